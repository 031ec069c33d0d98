// Atomic access to words of shared memory, which are plain integers there: the same bytes are read by other processes and,
// on other platforms, by devices. Order comes from these releases and acquires alone, not from fences, so that
// ThreadSanitizer sees what the protocol rests on.
#pragma once

#include <cstdint>

namespace pkcomm::host {

template <class Word>
Word load_acquire(const Word* word) {
  return __atomic_load_n(word, __ATOMIC_ACQUIRE);
}
template <class Word>
Word load_relaxed(const Word* word) {
  return __atomic_load_n(word, __ATOMIC_RELAXED);
}
template <class Word>
void store_release(Word* word, Word value) {
  __atomic_store_n(word, value, __ATOMIC_RELEASE);
}
template <class Word>
void store_relaxed(Word* word, Word value) {
  __atomic_store_n(word, value, __ATOMIC_RELAXED);
}
template <class Word>
Word fetch_add(Word* word, Word value) {
  return __atomic_fetch_add(word, value, __ATOMIC_ACQ_REL);
}
/// Stores `value` if the word is still 0; whether it did.
template <class Word>
bool store_if_zero(Word* word, Word value) {
  Word expected = 0;
  return __atomic_compare_exchange_n(word, &expected, value, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
}

}  // namespace pkcomm::host
