// How the direct schedules' bytes move: by register stores, by bulk copies through shared memory (TMA), by a copy engine.
// A mover issues copies and drains them before anything about them is published.
#pragma once

#include "base/host_device.hpp"
#include "protocol/layout.hpp"

namespace pkcomm {

struct RegisterMover {
  static constexpr Area kArea = Area::kRegister;
  PK_HD_POLICY
  template <class X>
  PK_HD static void copy(X& x, std::byte* to, const std::byte* from, std::uint64_t bytes) {
    x.copy(to, from, bytes);
  }
  PK_HD_POLICY
  template <class X>
  PK_HD static void drain(X& x) {
    x.barrier();
  }
};

struct BulkMover {
  static constexpr Area kArea = Area::kRegister;
  PK_HD_POLICY
  template <class X>
  PK_HD static void copy(X& x, std::byte* to, const std::byte* from, std::uint64_t bytes) {
    x.bulk(to, from, bytes);
  }
  PK_HD_POLICY
  template <class X>
  PK_HD static void drain(X& x) {
    x.drain_bulk();
  }
};

struct EngineMover {
  static constexpr Area kArea = Area::kCopyEngine;
  PK_HD_POLICY
  template <class X>
  PK_HD static void copy(X& x, std::byte* to, const std::byte* from, std::uint64_t bytes) {
    x.engine(to, from, bytes);
  }
  PK_HD_POLICY
  template <class X>
  PK_HD static void drain(X& x) {
    x.drain_engine();
  }
};

}  // namespace pkcomm
