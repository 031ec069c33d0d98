// The PTX that device code needs and C++ cannot say, one named function an instruction. Each cites the PTX ISA's section
// by title; what an access orders is said where it is called. All of it exists from sm_90 on. Addresses are of
// global memory.
#pragma once

#include <cstddef>
#include <cstdint>

namespace pkcomm::device::ptx {

/// "State Spaces, Types, and Variables: Global State Space"
__device__ __forceinline__ std::size_t global(const void* address) {
  return __cvta_generic_to_global(address);
}

// --- packets. "Memory Consistency Model: Scalar Data-types": a .b128 access is one access, so payload and tag are seen
// together or not at all; "Vector Data-types" would promise that of each half alone.

struct TaggedWord {
  std::uint64_t data, tag;
};

/// `packet`: 16 bytes, aligned to them. "Data Movement and Conversion Instructions: st"
__device__ __forceinline__ void store_packet(void* packet, std::uint64_t data, std::uint64_t tag) {
  asm volatile(
      "{\n\t"
      ".reg .b128 packet;\n\t"
      "mov.b128 packet, {%1, %2};\n\t"
      "st.relaxed.sys.global.b128 [%0], packet;\n\t"
      "}" ::"l"(global(packet)),
      "l"(data), "l"(tag)
      : "memory");
}

/// "Data Movement and Conversion Instructions: ld"
__device__ __forceinline__ TaggedWord load_packet(const void* packet) {
  TaggedWord seen;
  asm volatile(
      "{\n\t"
      ".reg .b128 packet;\n\t"
      "ld.relaxed.sys.global.b128 packet, [%2];\n\t"
      "mov.b128 {%0, %1}, packet;\n\t"
      "}"
      : "=l"(seen.data), "=l"(seen.tag)
      : "l"(global(packet))
      : "memory");
  return seen;
}

// --- words. "Data Movement and Conversion Instructions: ld", "... st"; "Memory Consistency Model: Release and Acquire
// Patterns"

__device__ __forceinline__ std::uint64_t load_acquire_sys(const std::uint64_t* word) {
  std::uint64_t value;
  asm volatile("ld.acquire.sys.global.b64 %0, [%1];" : "=l"(value) : "l"(global(word)) : "memory");
  return value;
}
__device__ __forceinline__ std::uint64_t load_relaxed_sys(const std::uint64_t* word) {
  std::uint64_t value;
  asm volatile("ld.relaxed.sys.global.b64 %0, [%1];" : "=l"(value) : "l"(global(word)) : "memory");
  return value;
}
__device__ __forceinline__ void store_release_sys(std::uint64_t* word, std::uint64_t value) {
  asm volatile("st.release.sys.global.b64 [%0], %1;" ::"l"(global(word)), "l"(value) : "memory");
}
__device__ __forceinline__ void store_relaxed_sys(std::uint64_t* word, std::uint64_t value) {
  asm volatile("st.relaxed.sys.global.b64 [%0], %1;" ::"l"(global(word)), "l"(value) : "memory");
}

/// Two neighbouring words, each one access; 16-byte aligned.
struct Pair {
  std::uint64_t first, second;
};
__device__ __forceinline__ Pair load_pair_relaxed_gpu(const std::uint64_t* words) {
  Pair pair;
  asm volatile("ld.relaxed.gpu.global.v2.b64 {%0, %1}, [%2];"
               : "=l"(pair.first), "=l"(pair.second)
               : "l"(global(words))
               : "memory");
  return pair;
}
__device__ __forceinline__ std::uint64_t load_relaxed_gpu(const std::uint64_t* word) {
  std::uint64_t value;
  asm volatile("ld.relaxed.gpu.global.b64 %0, [%1];" : "=l"(value) : "l"(global(word)) : "memory");
  return value;
}
__device__ __forceinline__ void store_pair_relaxed_gpu(std::uint64_t* words, Pair pair) {
  asm volatile("st.relaxed.gpu.global.v2.b64 [%0], {%1, %2};" ::"l"(global(words)), "l"(pair.first),
               "l"(pair.second)
               : "memory");
}

// --- read-modify-write. "Parallel Synchronization and Communication Instructions: atom"

/// Counts 0, 1, ... last, 0, ...; the count before.
__device__ __forceinline__ std::uint32_t count_relaxed_gpu(std::uint32_t* word, std::uint32_t last) {
  std::uint32_t before;
  asm volatile("atom.inc.relaxed.gpu.global.u32 %0, [%1], %2;"
               : "=r"(before)
               : "l"(global(word)), "r"(last)
               : "memory");
  return before;
}
/// "Parallel Synchronization and Communication Instructions: red"
__device__ __forceinline__ void increment_relaxed_gpu(std::uint64_t* word) {
  asm volatile("red.add.relaxed.gpu.global.u64 [%0], 1;" ::"l"(global(word)) : "memory");
}
__device__ __forceinline__ std::uint64_t exchange_if_equal_release_gpu(std::uint64_t* word,
                                                                       std::uint64_t expected,
                                                                       std::uint64_t value) {
  std::uint64_t before;
  asm volatile("atom.cas.release.gpu.global.b64 %0, [%1], %2, %3;"
               : "=l"(before)
               : "l"(global(word)), "l"(expected), "l"(value)
               : "memory");
  return before;
}
__device__ __forceinline__ std::uint64_t exchange_if_equal_release_sys(std::uint64_t* word,
                                                                       std::uint64_t expected,
                                                                       std::uint64_t value) {
  std::uint64_t before;
  asm volatile("atom.cas.release.sys.global.b64 %0, [%1], %2, %3;"
               : "=l"(before)
               : "l"(global(word)), "l"(expected), "l"(value)
               : "memory");
  return before;
}

/// Until every kernel that this one depends on has finished and its memory operations are visible. Without the attribute
/// of programmatic dependent launch it does nothing. "Parallel Synchronization and Communication Instructions:
/// griddepcontrol"
__device__ __forceinline__ void wait_for_prerequisites() {
  asm volatile("griddepcontrol.wait;" ::: "memory");
}
/// Nanoseconds; coarse. "Special Registers: %globaltimer"
__device__ __forceinline__ std::uint64_t nanoseconds() {
  std::uint64_t now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now)::"memory");
  return now;
}

}  // namespace pkcomm::device::ptx
