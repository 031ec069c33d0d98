// Marks code that is compiled for the host and, by nvcc, for the device as well. PK_HD_POLICY is for templates over an
// execution policy: the policy is host-only or device-only, which nvcc would otherwise warn about (#20011, #20014).
#pragma once

#ifdef __CUDACC__
#define PK_HD __host__ __device__
#define PK_HD_POLICY _Pragma("nv_exec_check_disable") __host__ __device__
#else
#define PK_HD
#define PK_HD_POLICY
#endif
