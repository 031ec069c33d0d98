// The dispatcher's reasons.
#include "comm/explain.hpp"

#include <algorithm>
#include <cstring>

#include "api/boundary.hpp"
#include "comm/communicator.hpp"
#include "pkcomm/pkcomm.h"

using namespace pkcomm;

extern "C" pkcommResult_t pkcommExplain(const pkcommExplainRequest_t* request, pkcommComm_t comm,
                                        pkcommExplanation_t* explanation, char* text, size_t capacity) {
  const auto answer = [&](const dispatch::Explanation& reasons) -> Status {
    if (explanation != nullptr) dispatch::fill(reasons, *explanation);
    if (text != nullptr && capacity > 0) {
      const std::string table = dispatch::to_text(reasons);
      const std::size_t bytes = std::min(table.size(), capacity - 1);
      std::memcpy(text, table.data(), bytes);
      text[bytes] = '\0';
    }
    return {};
  };
  const auto check = [&]() -> Status {
    PK_TRY(api::require(request != nullptr, "request is null"));
    PK_TRY(api::require(explanation == nullptr || explanation->size >= sizeof(std::size_t),
                        "explanation->size is not set"));
    return validate_explain_request(*request, comm == nullptr);
  };
  if (comm != nullptr) {
    return api::boundary(comm, [&](const Communicator& communicator) -> Status {
      PK_TRY(check());
      PK_ASSIGN(const auto reasons, communicator.explain(*request));
      return answer(reasons);
    });
  }
  return api::boundary([&]() -> Status {
    PK_TRY(check());
    PK_ASSIGN(const auto reasons, explain_machine(*request));
    return answer(reasons);
  });
}
