// Marks code that is compiled for the host and, by nvcc, for the device as well. PK_HD_POLICY stands on the line before
// `template` of a function over an execution policy, which is host-only or device-only: nvcc would otherwise warn about
// that (#20011, #20014). The pragma must precede the declaration, and PK_HD stands where attributes do.
//
// PK_COLD keeps a large function that is rarely called out of the kernels that call it.
#pragma once

#ifdef __CUDACC__
#define PK_HD __host__ __device__
#define PK_HD_POLICY _Pragma("nv_exec_check_disable")
#define PK_COLD __noinline__
#else
#define PK_HD
#define PK_HD_POLICY
#define PK_COLD
#endif
