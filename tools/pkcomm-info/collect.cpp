// The order matters in one place: the links are those between the GPUs that CUDA has named.
#include "facts.hpp"
#include "gpus.hpp"
#include "host.hpp"
#include "library.hpp"
#include "links.hpp"

namespace pkcomm::info {

Facts collect() {
  Facts facts;
  facts.library = ask_library();
  facts.cuda = ask_cuda();
  facts.nvml = ask_nvml(facts.cuda);
  facts.host = ask_hwloc(facts.cuda.gpus);
  return facts;
}

}  // namespace pkcomm::info
