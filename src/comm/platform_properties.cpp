// The platform, and a dispatcher made for the occasion, since that is where the tuning table is chosen.
#include "comm/platform_properties.hpp"

#include <algorithm>
#include <cstring>

#include "base/text.hpp"
#include "comm/machine.hpp"
#include "dispatch/dispatcher.hpp"
#include "topology/multicast_switch.hpp"

namespace pkcomm {

Status fill_platform_properties(pkcommPlatformProperties_t& properties) {
  PK_ASSIGN(Platform* const platform, Platform::get());
  PK_ASSIGN(const int current, platform->current_device());
  PK_ASSIGN(const DeviceFacts facts, platform->open_device(current < 0 ? 0 : current));
  const Topology machine = machine_of(platform->kind(), facts);
  const dispatch::Capabilities capabilities = dispatch::capabilities_of(machine);
  PK_ASSIGN(const auto dispatcher,
            dispatch::Dispatcher::create(machine, capabilities, dispatch::settings_from_environment()));
  pkcommPlatformProperties_t all{};
  all.size = properties.size;
  copy_text(all.platform, name(platform->kind()));
  all.multicast = capabilities.multicast ? 1 : 0;
  copy_text(all.multicast_reason, capabilities.multicast_reason);
  copy_text(all.multicast_switch, topology::multicast_switched_off());
  all.granularity_bytes = platform->granularity();
  copy_text(all.tuning, dispatcher.tuning().name());
  copy_text(all.tuning_note, dispatcher.tuning().note());
  std::memcpy(&properties, &all, std::min(properties.size, sizeof all));
  return {};
}

}  // namespace pkcomm
