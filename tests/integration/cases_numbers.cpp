// Numbers: what NaN, signed zeros, overflow and rounding come to, the same for every algorithm and on every rank.
#include <algorithm>
#include <array>

#include "integration/cases.hpp"

using namespace pkcomm::test;

namespace {

/// Bits of the special values of the float formats.
struct Format {
  pkcommDataType_t type;
  int exponent_bits, mantissa_bits;
  std::uint64_t quiet_nan;
  std::uint64_t infinity;

  std::uint64_t number(std::uint64_t value) const { return float_bits(value, exponent_bits, mantissa_bits); }
  std::uint64_t sign() const { return std::uint64_t{1} << (exponent_bits + mantissa_bits); }
  bool is_nan(std::uint64_t bits) const {
    if (type == pkcommFloat8e4m3) return (bits & 0x7F) == 0x7F;
    return (bits & ~sign()) > infinity;
  }
};
constexpr Format kFormats[] = {{pkcommFloat32, 8, 23, 0x7FC00000, 0x7F800000},
                               {pkcommFloat64, 11, 52, 0x7FF8000000000000, 0x7FF0000000000000},
                               {pkcommFloat16, 5, 10, 0x7E00, 0x7C00},
                               {pkcommBfloat16, 8, 7, 0x7FC0, 0x7F80},
                               {pkcommFloat8e4m3, 4, 3, 0x7F, 0x7F},  // e4m3 has no infinity
                               {pkcommFloat8e5m2, 5, 2, 0x7E, 0x7C}};
const Format& format_of(pkcommDataType_t type) {
  return *std::find_if(std::begin(kFormats), std::end(kFormats),
                       [type](const Format& f) { return f.type == type; });
}

template <class T>
std::uint64_t bits_of(T value) {
  std::uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof value);
  return bits;
}

/// Runs `body` once for each algorithm, on `nranks` ranks.
void with_each_algorithm(int nranks, const std::function<void(Rank&, Place)>& body) {
  for (const std::string& algorithm : algorithms()) {
    CAPTURE(nranks, algorithm);
    const Environment environment = forced(algorithm);
    const Place place = algorithm == "multimem_emulated" ? Place::kSymmetric : Place::kDevice;
    run_world(nranks, [&](Rank& self) { body(self, place); });
  }
}

/// One all_reduce whose inputs and result are given by their bits.
struct Reduction {
  const char* what;
  pkcommDataType_t type;
  pkcommRedOp_t op;
  std::vector<std::uint64_t> inputs;
  std::uint64_t wanted;
};

void check(Rank& self, Place place, const Reduction& row, std::size_t count) {
  check_all_reduce(self, place, row.type, row.op, count, row.inputs, row.wanted,
                   std::string(row.what) + ", count " + std::to_string(count));
}

void check_each_algorithm(const std::vector<Reduction>& rows, const std::vector<std::size_t>& counts) {
  for (const Reduction& row : rows) {
    CAPTURE(row.what);
    with_each_algorithm(static_cast<int>(row.inputs.size()), [&](Rank& self, Place place) {
      for (const std::size_t count : counts) check(self, place, row, count);
    });
  }
}

/// reduce_scatter and reduce of the same inputs give the same as all_reduce.
void check_other_reductions(Rank& self, const Reduction& row, std::size_t count) {
  const std::size_t element = bytes_of(row.type);
  const auto n = static_cast<std::size_t>(self.nranks);
  Memory send(self, Place::kVisible, n * count * element, element),
      recv(self, Place::kVisible, count * element, element);
  fill_bits(send.host(), row.type, row.inputs[static_cast<std::size_t>(self.rank)], n * count);
  send.upload();
  self.ok(pkcommReduceScatter(send.at(), recv.at(), count, row.type, row.op, self.comm, self.stream),
          row.what);
  recv.download();
  self.synchronize(row.what);
  self.expect(first_other(recv.host(), row.type, row.wanted, count) < 0,
              std::string(row.what) + ": reduce_scatter is wrong");
  for (int root = 0; root < self.nranks; ++root) {
    recv.fill(Memory::kPoison);
    self.ok(pkcommReduce(send.at(), recv.at(), count, row.type, row.op, root, self.comm, self.stream),
            row.what);
    recv.download();
    self.synchronize(row.what);
    if (self.rank == root) {
      self.expect(first_other(recv.host(), row.type, row.wanted, count) < 0,
                  std::string(row.what) + ": reduce is wrong");
    }
  }
  send.download();
  self.synchronize(row.what);
  self.expect(send.guards_intact() && recv.guards_intact(),
              std::string(row.what) + ": wrote outside the buffers");
}

}  // namespace

TEST_CASE("C08 a NaN loses against a number, wherever it is", "[integration][C08]") {
  with_each_algorithm(4, [](Rank& self, Place place) {
    for (const Format& format : kFormats) {
      std::array<std::uint64_t, 4> inputs = {format.number(1), format.quiet_nan, format.number(3),
                                             format.number(4)};
      std::sort(inputs.begin(), inputs.end());
      do {
        const std::vector<std::uint64_t> given(inputs.begin(), inputs.end());
        for (const std::size_t count : {std::size_t{1}, std::size_t{1000}}) {
          const std::string what = "type " + std::to_string(format.type) + ", count " + std::to_string(count);
          check_all_reduce(self, place, format.type, pkcommMin, count, given, format.number(1),
                           "min, " + what);
          check_all_reduce(self, place, format.type, pkcommMax, count, given, format.number(4),
                           "max, " + what);
        }
      } while (std::next_permutation(inputs.begin(), inputs.end()));
      for (const pkcommRedOp_t op : {pkcommMin, pkcommMax}) {
        constexpr std::size_t kCount = 1000;
        const std::size_t element = bytes_of(format.type);
        Memory block(self, place, kCount * element, element);
        fill_bits(block.host(), format.type, format.quiet_nan, kCount);
        block.upload();
        self.ok(pkcommAllReduce(block.at(), block.at(), kCount, format.type, op, self.comm, self.stream),
                "all NaN");
        block.download();
        self.synchronize("all NaN");
        for (std::size_t i = 0; i < kCount; ++i) {
          if (!self.expect(format.is_nan(bits_at(block.host() + i * element, format.type)),
                           "all NaN gives a number"))
            break;
        }
      }
    }
  });
}

TEST_CASE("C08 minimum and maximum know no identity", "[integration][C08]") {
  const std::uint64_t infinity = 0x7F800000, negative = 0xFF800000;
  const auto rows = std::vector<Reduction>{
      {"max of -inf", pkcommFloat32, pkcommMax, {negative, negative, negative, negative}, negative},
      {"min of +inf", pkcommFloat32, pkcommMin, {infinity, infinity, infinity, infinity}, infinity},
      {"max of -5, -7", pkcommFloat32, pkcommMax, {bits_of(-5.0f), bits_of(-7.0f)}, bits_of(-5.0f)},
      {"max of int -5, -7", pkcommInt32, pkcommMax, {bits_of(-5), bits_of(-7)}, bits_of(-5)},
      {"max of int8 -128", pkcommInt8, pkcommMax, {0x80, 0x80}, 0x80},
      {"min of uint8 255", pkcommUint8, pkcommMin, {255, 255}, 255}};
  check_each_algorithm(rows, {1, 1000});
}

TEST_CASE("C09 what is copied is bit for bit the same, whatever the bits", "[integration][C09]") {
  struct Pattern {
    pkcommDataType_t type;
    std::uint64_t bits;
  };
  constexpr Pattern kPatterns[] = {{pkcommFloat32, 0x80000000}, {pkcommFloat16, 0x8000},
                                   {pkcommBfloat16, 0x8000},    {pkcommFloat32, 0xFFFFFFFF},
                                   {pkcommFloat32, 0},          {pkcommFloat32, 0xDEADBEEF},
                                   {pkcommFloat32, 0x7F800001}, {pkcommFloat16, 0xFFFF},
                                   {pkcommFloat8e4m3, 0x80},    {pkcommFloat64, 0x7FF0000000000001}};
  const int nranks = GENERATE(2, 4);
  with_each_algorithm(nranks, [&](Rank& self, Place place) {
    constexpr std::size_t kMost = 20011;
    const auto n = static_cast<std::size_t>(self.nranks);
    Memory send(self, place, n * kMost * 8, 8), recv(self, place, n * kMost * 8, 8);
    for (const Pattern& pattern : kPatterns) {
      for (const std::size_t count : {std::size_t{1}, std::size_t{1023}, kMost}) {
        const std::string with =
            " of bits " + std::to_string(pattern.bits) + ", count " + std::to_string(count);
        fill_bits(send.host(), pattern.type, pattern.bits, n * count);
        send.upload();
        const auto finish = [&](const std::string& what, std::size_t wanted) {
          recv.download();
          self.synchronize(what + with);
          self.expect(first_other(recv.host(), pattern.type, pattern.bits, wanted) < 0,
                      what + with + " is wrong");
          recv.fill(Memory::kPoison);
        };
        recv.fill(Memory::kPoison);
        self.ok(pkcommBroadcast(send.at(), recv.at(), count, pattern.type, 1, self.comm, self.stream),
                "broadcast");
        finish("broadcast", count);
        self.ok(pkcommAllGather(send.at(), recv.at(), count, pattern.type, self.comm, self.stream),
                "all_gather");
        finish("all_gather", n * count);
        self.ok(pkcommAllToAll(send.at(), recv.at(), count, pattern.type, self.comm, self.stream),
                "all_to_all");
        finish("all_to_all", n * count);
        const int next = (self.rank + 1) % self.nranks,
                  previous = (self.rank + self.nranks - 1) % self.nranks;
        self.ok(pkcommGroupStart(), "group");
        self.ok(pkcommSend(send.at(), count, pattern.type, next, self.comm, self.stream), "send");
        self.ok(pkcommRecv(recv.at(), count, pattern.type, previous, self.comm, self.stream), "recv");
        self.ok(pkcommGroupEnd(), "group");
        finish("recv", count);
      }
    }
  });
}

TEST_CASE("C09 the zeros have their signs", "[integration][C09]") {
  for (const Format& format : kFormats) {
    const std::uint64_t minus = format.sign();
    CAPTURE(format.type);
    check_each_algorithm({{"sum of -0, 2 ranks", format.type, pkcommSum, {minus, minus}, minus},
                          {"sum of -0, 4 ranks", format.type, pkcommSum, {minus, minus, minus, minus}, minus},
                          {"min of -0, +0", format.type, pkcommMin, {minus, 0}, minus},
                          {"min of +0, -0", format.type, pkcommMin, {0, minus}, minus},
                          {"max of -0, +0", format.type, pkcommMax, {minus, 0}, 0},
                          {"max of +0, -0", format.type, pkcommMax, {0, minus}, 0}},
                         {1, 1023});
  }
}

TEST_CASE("C10 integers wrap round, each element by itself", "[integration][C10]") {
  struct Row {
    const char* what;
    pkcommDataType_t type;
    pkcommRedOp_t op;
    std::vector<std::int64_t> first, second, wanted;
  };
  const std::vector<Row> rows = {
      {"int8 sum",
       pkcommInt8,
       pkcommSum,
       {120, 0, -1, 127, -128},
       {100, 0, -1, 1, -1},
       {-36, 0, -2, -128, 127}},
      {"uint8 sum", pkcommUint8, pkcommSum, {200, 255, 1, 0}, {100, 1, 1, 0}, {44, 0, 2, 0}},
      {"int8 prod", pkcommInt8, pkcommProd, {16, 1}, {16, 7}, {0, 7}},
      {"int32 sum", pkcommInt32, pkcommSum, {2147483647, 0}, {1, 0}, {-2147483648, 0}}};
  with_each_algorithm(2, [&](Rank& self, Place place) {
    for (const Row& row : rows) {
      const std::size_t element = bytes_of(row.type);
      Memory send(self, place, 33 * element, element), recv(self, place, 33 * element, element);
      std::vector<std::byte> wanted(33 * element);
      for (std::size_t i = 0; i < 33; ++i) {
        const auto& input = self.rank == 0 ? row.first : row.second;
        std::memcpy(send.host() + i * element, &input[i % input.size()], element);
        std::memcpy(wanted.data() + i * element, &row.wanted[i % row.wanted.size()], element);
      }
      send.upload();
      for (std::size_t count = 1; count <= 33; ++count) {
        recv.fill(Memory::kPoison);
        const std::string what = std::string(row.what) + " of " + std::to_string(count);
        self.ok(pkcommAllReduce(send.at(), recv.at(), count, row.type, row.op, self.comm, self.stream), what);
        recv.download();
        self.synchronize(what);
        const std::ptrdiff_t wrong = first_difference(recv.host(), wanted.data(), count, element);
        self.expect(wrong < 0, what + ": element " + std::to_string(wrong) + " is wrong");
        self.expect(recv.guards_intact(count * element), what + ": wrote outside the output");
      }
    }
  });
}

TEST_CASE("C10 256 ranks sum to 0 in 8 bits, and their maximum is 1", "[integration][C10]") {
  if (!fits_devices(256)) return;
  const Environment environment = variable("PKCOMM_STAGING", "4M");
  run_world(256, [](Rank& self) {
    const std::vector<std::uint64_t> ones(256, 1);
    check(self, Place::kVisible, {"sum", pkcommUint8, pkcommSum, ones, 0}, 3);
    check(self, Place::kVisible, {"max", pkcommUint8, pkcommMax, ones, 1}, 3);
  });
}

TEST_CASE("C11 the average of large numbers is no infinity", "[integration][C11]") {
  check_each_algorithm(
      {{"fp16 60000", pkcommFloat16, pkcommAvg, {0x7B53, 0x7B53}, 0x7B53},
       {"largest fp32", pkcommFloat32, pkcommAvg, {0x7F7FFFFF, 0x7F7FFFFF}, 0x7F7FFFFF},
       {"largest fp16", pkcommFloat16, pkcommAvg, std::vector<std::uint64_t>(8, 0x7BFF), 0x7BFF},
       {"largest bf16", pkcommBfloat16, pkcommAvg, std::vector<std::uint64_t>(10, 0x7F7F), 0x7F7F}},
      {1, 1000});
}

TEST_CASE("C12 integer averages wrap as sums and round toward zero", "[integration][C12]") {
  const std::vector<Reduction> rows = {
      {"7, 0", pkcommInt32, pkcommAvg, {7, 0}, 3},
      {"-3, 0", pkcommInt32, pkcommAvg, {bits_of(-3), 0}, bits_of(-1)},
      {"-1, 0", pkcommInt32, pkcommAvg, {bits_of(-1), 0}, 0},
      {"1, 1, 0", pkcommInt32, pkcommAvg, {1, 1, 0}, 0},
      {"1, 2, 3, 4", pkcommInt32, pkcommAvg, {1, 2, 3, 4}, 2},
      {"int8 100, 100", pkcommInt8, pkcommAvg, {100, 100}, bits_of(std::int8_t{-28})},
      {"largest uint32", pkcommUint32, pkcommAvg, {4294967295, 4294967295}, 2147483647},
      {"int64 2^62", pkcommInt64, pkcommAvg, {1ull << 62, 1ull << 62}, bits_of(-(std::int64_t{1} << 62))}};
  check_each_algorithm(rows, {1, 1000});
  for (const Reduction& row : rows) {
    CAPTURE(row.what);
    with_each_algorithm(static_cast<int>(row.inputs.size()),
                        [&](Rank& self, Place) { check_other_reductions(self, row, 100); });
  }
}

TEST_CASE("C13 sums of 16-bit floats keep small addends", "[integration][C13]") {
  struct Row {
    const char* what;
    pkcommDataType_t type;
    int nranks;
    std::uint64_t large, wanted;
  };
  const std::vector<Row> rows = {{"bf16, 4 ranks", pkcommBfloat16, 4, 256, 0x4382},
                                 {"bf16, 8 ranks", pkcommBfloat16, 8, 256, 0x4384},
                                 {"fp16, 8 ranks", pkcommFloat16, 8, 2048, 0x6804}};
  for (const Row& row : rows) {
    with_each_algorithm(row.nranks, [&](Rank& self, Place place) {
      const Format& format = format_of(row.type);
      for (std::size_t odd = 0; odd < static_cast<std::size_t>(row.nranks); ++odd) {
        std::vector<std::uint64_t> inputs(static_cast<std::size_t>(row.nranks), format.number(1));
        inputs[odd] = format.number(row.large);
        for (const std::size_t count : {std::size_t{1}, std::size_t{1000}, std::size_t{70001}}) {
          // Rounded to even once, at the end: 256 + 7 lies between 262 and 264, 2048 + 7 between 2054 and 2056.
          check(self, place, {row.what, row.type, pkcommSum, inputs, row.wanted}, count);
        }
      }
    });
  }
}

TEST_CASE("C14 8-bit floats are numbers, and all of them are reduced", "[integration][C14]") {
  const std::uint64_t e4m3 = 0x38, e5m2 = 0x3C, two_in_e4m3 = 0x40, two_in_e5m2 = 0x40;
  std::vector<Reduction> rows;
  for (const pkcommRedOp_t op : {pkcommMax, pkcommMin, pkcommProd, pkcommAvg}) {
    rows.push_back({"e4m3", pkcommFloat8e4m3, op, {e4m3, e4m3}, e4m3});
    rows.push_back({"e5m2", pkcommFloat8e5m2, op, {e5m2, e5m2}, e5m2});
  }
  rows.push_back({"e4m3 sum", pkcommFloat8e4m3, pkcommSum, {e4m3, e4m3}, two_in_e4m3});
  rows.push_back({"e5m2 sum", pkcommFloat8e5m2, pkcommSum, {e5m2, e5m2}, two_in_e5m2});
  check_each_algorithm(rows, {64});
}

TEST_CASE("C15 every type has every operation", "[integration][C15]") {
  with_each_algorithm(4, [](Rank& self, Place place) {
    constexpr std::uint64_t kE4m3[] = {0x52, 0x5C, 0x48, 0x38, 0x42},
                            kE5m2[] = {0x49, 0x4E, 0x44, 0x3C, 0x41};
    constexpr std::uint64_t kResults[] = {10, 24, 4, 1,
                                          2};  // sum, prod, max, min, and the average of integers
    for (const pkcommDataType_t type : kTypes) {
      std::vector<std::uint64_t> inputs;
      for (std::uint64_t value = 1; value <= 4; ++value) {
        std::uint64_t bits = 0;
        store(reinterpret_cast<std::byte*>(&bits), type, value);
        inputs.push_back(bits);
      }
      for (const pkcommRedOp_t op : kOps) {
        std::uint64_t wanted = 0;
        store(reinterpret_cast<std::byte*>(&wanted), type, kResults[op]);
        if (op == pkcommAvg && type == pkcommFloat16) wanted = 0x4100;
        if (op == pkcommAvg && type == pkcommBfloat16) wanted = 0x4020;
        if (op == pkcommAvg && type == pkcommFloat32) wanted = bits_of(2.5f);
        if (op == pkcommAvg && type == pkcommFloat64) wanted = bits_of(2.5);
        if (type == pkcommFloat8e4m3) wanted = kE4m3[op];
        if (type == pkcommFloat8e5m2) wanted = kE5m2[op];
        check_all_reduce(self, place, type, op, 100, inputs, wanted,
                         "type " + std::to_string(type) + ", op " + std::to_string(op));
      }
    }
  });
}
