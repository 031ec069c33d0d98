// Which ids this process uses, so that an id serves once: a rank takes a seat for the time of its start-up. The ranks
// of one communicator that start up here share what they need: the listener for other processes' connections, and in
// the end the membership.
#pragma once

#include <functional>
#include <memory>

#include "base/status.hpp"
#include "bootstrap/endpoint.hpp"
#include "bootstrap/nonce.hpp"

namespace pkcomm::bootstrap {

class Membership;

class Seat {
 public:
  struct Shared;

  /// pkcommInvalidUsage where this rank has used the id in this process already, or the id's communicator exists.
  static Result<Seat> take(const Nonce& nonce, int rank);
  Seat(Seat&&) noexcept = default;
  Seat& operator=(Seat&&) = delete;
  ~Seat();

  /// Where the other processes connect to; alive while a seat is.
  const Listener& listener() const;
  /// The one membership of this process: the first caller makes it.
  std::shared_ptr<Membership> membership(const std::function<std::shared_ptr<Membership>()>& make);

 private:
  Seat(const Nonce& nonce, std::shared_ptr<Shared> shared);

  Nonce nonce_;
  std::shared_ptr<Shared> shared_;
};

}  // namespace pkcomm::bootstrap
