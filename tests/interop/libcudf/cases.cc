#include "cases.h"

namespace {

constexpr std::int64_t rows = 5, long_beyond = std::int64_t{1} << 31;

const Type i32{"i", {}, {}, {}}, i64{"l", {}, {}, {}}, utf8{"u", {}, {}, {}};

Type of(const std::string& format) { return {format, {}, {}, {}}; }
Type of(const std::string& format, std::vector<Type> children) { return {format, std::move(children), {}, {}}; }
Type indexed(const std::string& index, const Type& values) { return {index, {}, {values}, {}}; }

const Type pair = of("+s", {i32, utf8});
const Type map = of("+m", {of("+s", {utf8, i32})});

// One key and its value, as schema metadata are laid out.
std::string metadata(const std::string& key, const std::string& value) {
  const auto number = [](std::size_t n) {
    const auto small = static_cast<std::int32_t>(n);
    return std::string(reinterpret_cast<const char*>(&small), sizeof small);
  };
  return number(1) + number(key.size()) + key + number(value.size()) + value;
}

Type extension(Type storage) {
  storage.metadata = metadata("ARROW:extension:name", "example.kind");
  return storage;
}

std::vector<std::pair<std::string, Type>> types() {
  std::vector<std::pair<std::string, Type>> all;
  for (const char* format :
       {"n", "b", "c", "C", "s", "S", "i", "I", "l", "L", "e", "f", "g", "d:9,2,32", "d:18,2,64", "d:38,2", "d:38,-2,128",
        "d:76,2,256", "z", "Z", "u", "U", "vz", "vu", "w:4", "tdD", "tdm", "tts", "ttm", "ttu", "ttn", "tss:", "tsm:", "tsu:",
        "tsn:", "tsn:Europe/Zurich", "tDs", "tDm", "tDu", "tDn", "tiM", "tiD", "tin"})
    all.emplace_back(format, of(format));
  all.insert(all.end(), {
      {"+l<i>", of("+l", {i32})},          {"+L<i>", of("+L", {i32})},
      {"+vl<i>", of("+vl", {i32})},        {"+vL<i>", of("+vL", {i32})},
      {"+w:2<i>", of("+w:2", {i32})},      {"+w:0<i>", of("+w:0", {i32})},
      {"+s<i,u>", pair},                   {"+s<>", of("+s")},
      {"+m<u,i>", map},                    {"+ud:0,1<i,u>", of("+ud:0,1", {i32, utf8})},
      {"+us:0,1<i,u>", of("+us:0,1", {i32, utf8})}, {"+r<i,l>", of("+r", {i32, i64})},
      {"+l<+s<i,u>>", of("+l", {pair})},   {"+l<+l<i>>", of("+l", {of("+l", {i32})})},
      {"+l<u>", of("+l", {utf8})},         {"+l<b>", of("+l", {of("b")})},
      {"+s<+l<i>>", of("+s", {of("+l", {i32})})}, {"+s<+s<i,u>>", of("+s", {pair})},
      {"+s<b>", of("+s", {of("b")})},      {"+s<e>", of("+s", {of("e")})},
      {"+s<vu>", of("+s", {of("vu")})},    {"+s<+w:2<i>>", of("+s", {of("+w:2", {i32})})},
      {"+s<+m>", of("+s", {map})},         {"+l<z>", of("+l", {of("z")})},
      {"+s<n>", of("+s", {of("n")})},      {"+l<n>", of("+l", {of("n")})},
      {"+s<i:u>", of("+s", {indexed("i", utf8)})}, {"+l<i:u>", of("+l", {indexed("i", utf8)})},
      {"i:i:u", indexed("i", indexed("i", utf8))}, {"i:+s<i,u>", indexed("i", pair)},
      {"i:l", indexed("i", i64)},          {"i:b", indexed("i", of("b"))},
      {"i:+l<i>", indexed("i", of("+l", {i32}))},  {"i:n", indexed("i", of("n"))},
      {"i:z", indexed("i", of("z"))},      {"i:vu", indexed("i", of("vu"))},
      {"extension i", extension(i32)},     {"extension w:16", extension(of("w:16"))},
      {"extension u", extension(utf8)},
  });
  for (const char* index : {"c", "C", "s", "S", "i", "I", "l", "L"})
    all.emplace_back(std::string(index) + ":u", indexed(index, utf8));
  Type deep = i32;
  for (int depth = 0; depth < 40; depth++) deep = of("+s", {deep});
  all.emplace_back("40 structs", deep);
  Type lists = i32;
  for (int depth = 0; depth < 3; depth++) lists = of("+l", {lists});
  all.emplace_back("3 lists", lists);
  return all;
}

bool has_bitmap(const Node& node) {
  return node.format != "n" && node.format != "+r" && !node.format.starts_with("+u");
}

Node without_buffers(Node node) {
  node = window(node, 0, 0);
  for (Buffer& buffer : node.buffers) buffer = Buffer::none();
  for (Node& child : node.children) child = without_buffers(child);
  for (Node& values : node.dictionary) values = without_buffers(values);
  return node;
}

Node not_nullable(Node node) {
  node.flags = 0;
  for (Node& child : node.children) child = not_nullable(child);
  for (Node& values : node.dictionary) values = not_nullable(values);
  return node;
}

Node with_count(Node node, std::int64_t null_count) {
  node.null_count = null_count;
  return node;
}

Node bent(Node node, void (*bend)(Node&)) {
  bend(node);
  return node;
}

Case table(const std::string& name, Node node) {
  Case test{name, std::move(node)};
  test.is_table = true;
  return test;
}

Case wild_table(const std::string& name, Node node) {
  Case test = table(name, std::move(node));
  test.readable = false;
  return test;
}

}  // namespace

std::vector<Case> every_type() {
  std::vector<Case> all;
  for (const auto& [name, type] : types()) {
    for (const std::int64_t offset : {0, 1}) {
      const std::string at = name + " from " + std::to_string(offset);
      const Node without = window(fill(type, rows, false), offset, 3);
      all.push_back({at + ", no bitmap", without});
      if (!has_bitmap(without)) continue;
      all.push_back({at + ", no bitmap, null_count -1", with_count(without, -1)});
      const Node with = window(fill(type, rows, true), offset, 3);
      all.push_back({at + ", nulls", with});
      all.push_back({at + ", nulls, null_count -1", with_count(with, -1)});
    }
    // The host's consumers give every nullable column a bitmap, for which they need the GPU.
    for (const std::int64_t offset : {0, 1}) {
      const Node node = not_nullable(window(fill(type, rows, false), offset, 3));
      all.push_back({name + " from " + std::to_string(offset) + ", not nullable", node});
    }
    all.push_back({name + ", no rows", window(fill(type, rows, true), 0, 0)});
    all.push_back({name + ", no rows from 1", window(fill(type, rows, true), 1, 0)});
    all.push_back({name + ", no rows, no buffers", without_buffers(fill(type, rows, true))});
    all.push_back({name + ", no rows, no buffers, not nullable", not_nullable(without_buffers(fill(type, rows, true)))});
  }
  return all;
}

std::vector<Case> tables() {
  const Node plain = fill(pair, rows, false), nulls = fill(pair, rows, true);
  const Node numbers = fill(of("+s", {i32, i64}), rows, false);
  std::vector<Case> all{
      table("table", plain),
      table("table of fixed width", numbers),
      table("table from 1, its columns whole", window(plain, 1, 4)),
      table("table from 1, its columns longer", window(plain, 1, 3)),
      table("table from 0, its columns longer", window(plain, 0, 3)),
      table("table of fixed width from 1, its columns longer", window(numbers, 1, 3)),
      table("table with nulls", nulls),
      table("table with nulls, null_count -1", with_count(nulls, -1)),
      table("table with a bitmap without nulls", bent(nulls, [](Node& node) {
              node.buffers[0] = Buffer::of("\xff", 1);
              node.null_count = 0;
            })),
      table("table with null_count -1 and no bitmap", with_count(plain, -1)),
      table("table without columns", fill(of("+s"), rows, false)),
      table("table without columns from 1", window(fill(of("+s"), rows, false), 1, 3)),
      table("table without rows", window(plain, 0, 0)),
      table("table without rows, no buffers", without_buffers(plain)),
      table("table whose window is in its columns", bent(plain, [](Node& node) {
              node.length = 3;
              for (Node& child : node.children) child = window(child, 1, 3);
            })),
      table("table whose columns have different windows", bent(plain, [](Node& node) {
              node.length = 3;
              node.child(0) = window(node.child(0), 1, 3);
              node.child(1) = window(node.child(1), 2, 3);
            })),
      table("table whose columns have different lengths", bent(plain, [](Node& node) {
              node.length = 3;
              node.child(0) = window(node.child(0), 0, 3);
            })),
      table("table whose struct column has a window and nulls", [] {
        Node table = fill(of("+s", {pair}), rows, false);
        table.length = 3;
        table.child(0) = window(fill(pair, rows, true), 1, 3);
        return table;
      }()),
      table("table whose column has null_count -1", bent(fill(of("+s", {i32}), rows, false), [](Node& node) {
              node.child(0) = with_count(fill(i32, rows, true), -1);
            })),
      wild_table("table longer than its columns", bent(plain, [](Node& node) { node.length = 7; })),
      table("table that is no struct", fill(i32, rows, false)),
      table("table that is a dictionary", fill(indexed("i", utf8), rows, false)),
      table("table that is a map", fill(map, rows, false)),
  };
  const std::size_t nullable = all.size();
  for (std::size_t i = 0; i < nullable; i++) {
    all.push_back(table(all[i].name + ", not nullable", not_nullable(all[i].node)));
    all.back().readable = all[i].readable;
  }
  return all;
}

namespace {

Case wild(const std::string& name, Node node) {
  Case test{name, std::move(node)};
  test.readable = false;
  return test;
}

Node shifted(const Type& type, std::size_t buffer, std::size_t by) {
  Node node = fill(type, rows, true);
  node.buffers.at(buffer) = node.buffers[buffer].shifted(by);
  return node;
}

Node without(const Type& type, std::size_t buffer) {
  Node node = fill(type, rows, false);
  node.buffers.at(buffer) = Buffer::none();
  return node;
}

// Everything in it is zero, but it is all there.
Node so_long(const Type& type, std::int64_t offset, std::int64_t length) {
  Node node = fill(type, rows, false);
  node.offset = offset;
  node.length = length;
  for (std::size_t i = 1; i < node.buffers.size(); i++) node.buffers[i] = Buffer::vast();
  const std::int64_t of_each = type.format.starts_with("+w:") ? std::stol(type.format.substr(3)) : 1;
  if (type.format != "+l")
    for (Node& child : node.children) child = so_long(Type{child.format, {}, {}, {}}, 0, (offset + length) * of_each);
  return node;
}

void add_devices(std::vector<Case>& all) {
  const std::pair<const char*, Type> some[] = {{"i", i32}, {"u", utf8}, {"+s<i,u>", pair}, {"b", of("b")},
                                               {"+w:2<i>", of("+w:2", {i32})}, {"+L<i>", of("+L", {i32})}};
  for (const auto& [name, type] : some)
    for (const std::int32_t device : {1, 2, 3, 4, 7, 8, 10, 11, 12, 13, 14}) {
      Case test{std::string(name) + " on device type " + std::to_string(device), fill(type, rows, false)};
      test.device_type = device;
      all.push_back(test);
    }
  for (const std::int64_t id : {-1, 0, 1, 7}) {
    all.push_back({"l on device " + std::to_string(id), fill(i64, rows, false)});
    all.back().device_id = id;
  }
  all.push_back({"l with an event", fill(i64, rows, false)});
  all.back().with_event = true;
  all.push_back({"e with an event", fill(of("e"), rows, false)});
  all.back().with_event = true;
}

void add_lengths(std::vector<Case>& all) {
  const std::pair<const char*, Type> some[] = {{"i", i32}, {"u", utf8}, {"b", of("b")}, {"+l<i>", of("+l", {i32})},
                                               {"+s<i,u>", pair}, {"+w:2<i>", of("+w:2", {i32})}, {"i:u", indexed("i", utf8)},
                                               {"n", of("n")}};
  for (const auto& [name, type] : some) {
    const std::string of_type = name;
    all.push_back(wild(of_type + ", 2^31 rows", so_long(type, 0, long_beyond)));
    // The host's copies would read all of it.
    if (of_type != "i" && of_type != "n") all.push_back(wild(of_type + ", 2^31 - 1 rows", so_long(type, 0, long_beyond - 1)));
    all.push_back(wild(of_type + " from 2^31", so_long(type, long_beyond, 3)));
    all.push_back(wild(of_type + " from 2^32 + 1", so_long(type, 2 * long_beyond + 1, 3)));
    all.push_back(wild(of_type + " from 2^31 - 3", so_long(type, long_beyond - 3, 3)));
    all.push_back(wild(of_type + " from -1", so_long(type, -1, 3)));
    all.push_back(wild(of_type + ", -1 rows", so_long(type, 0, -1)));
  }
}

void add_nulls(std::vector<Case>& all) {
  all.push_back({"l, null_count 1, no bitmap", with_count(fill(i64, rows, false), 1)});
  all.push_back({"u, null_count 1, no bitmap", with_count(fill(utf8, rows, false), 1)});
  all.push_back({"+s<i,u>, null_count 1, no bitmap", with_count(fill(pair, rows, false), 1)});
  all.push_back({"l, a bitmap without nulls, null_count -1", bent(fill(i64, rows, true), [](Node& node) {
    node.buffers[0] = Buffer::of("\xff", 1);
    node.null_count = -1;
  })});
  all.push_back({"l, null_count above its length", with_count(fill(i64, rows, true), 9)});
  all.push_back({"l, null_count 0 where there are nulls", with_count(fill(i64, rows, true), 0)});
  all.push_back({"l, null_count 0 where there are nulls, not nullable", not_nullable(with_count(fill(i64, rows, true), 0))});
  all.push_back({"l, null_count -2", with_count(fill(i64, rows, true), -2)});
  all.push_back({"l, null_count 2^32", with_count(fill(i64, rows, true), 2 * long_beyond)});
  all.push_back({"n, null_count 0", with_count(fill(of("n"), rows, false), 0)});
  all.push_back({"n, null_count -1", with_count(fill(of("n"), rows, false), -1)});
  Node keys = fill(indexed("i", utf8), rows, false);
  keys.values() = fill(utf8, 3, true);
  all.push_back({"i:u whose values have nulls", keys});
  keys.values() = with_count(fill(utf8, 3, true), -1);
  all.push_back({"i:u whose values have nulls, null_count -1", keys});
  keys.values() = window(fill(utf8, 5, false), 1, 3);
  all.push_back({"i:u whose values have a window", keys});
  keys.values() = fill(utf8, 0, false);
  all.push_back(wild("i:u without values", keys));
  Node inner = fill(of("+s", {i32}), rows, false);
  inner.child(0) = with_count(fill(i32, rows, true), -1);
  all.push_back({"+s<i> whose child has null_count -1", inner});
  inner.child(0) = fill(i32, rows, true);
  all.push_back({"+s<i> whose child has nulls", inner});
  inner.child(0) = window(fill(i32, rows + 1, true), 1, rows);
  all.push_back({"+s<i> from 1 whose child has a window", window(inner, 1, 3)});
}

void add_addresses(std::vector<Case>& all) {
  all.push_back({"l, values shifted by 4", shifted(i64, 1, 4)});
  all.push_back({"l, values shifted by 8", shifted(i64, 1, 8)});
  all.push_back({"i, values shifted by 2", shifted(i32, 1, 2)});
  all.push_back({"c, values shifted by 1", shifted(of("c"), 1, 1)});
  all.push_back({"d:38,2, values shifted by 8", shifted(of("d:38,2"), 1, 8)});
  all.push_back({"l, bitmap shifted by 1", shifted(i64, 0, 1)});
  all.push_back({"l, bitmap shifted by 4", shifted(i64, 0, 4)});
  all.push_back({"u, offsets shifted by 2", shifted(utf8, 1, 2)});
  all.push_back({"U, offsets shifted by 4", shifted(of("U"), 1, 4)});
  all.push_back({"u, characters shifted by 1", shifted(utf8, 2, 1)});
  all.push_back({"i:u, indices shifted by 2", shifted(indexed("i", utf8), 1, 2)});
  all.push_back({"b, values shifted by 1", shifted(of("b"), 1, 1)});
  all.push_back({"+l<i>, offsets shifted by 2", shifted(of("+l", {i32}), 1, 2)});
  all.push_back({"+s<i>, bitmap shifted by 1", shifted(of("+s", {i32}), 0, 1)});
  Node inner = fill(of("+s", {i64}), rows, false);
  inner.child(0) = shifted(i64, 1, 4);
  all.push_back({"+s<l>, values shifted by 4", inner});
  for (const auto& [name, type] : {std::pair{"l", i64}, {"u", utf8}, {"b", of("b")}, {"+l<i>", of("+l", {i32})}})
    all.push_back(wild(std::string(name) + ", buffer 1 NULL", without(type, 1)));
  all.push_back(wild("u, buffer 2 NULL", without(utf8, 2)));
  all.back().deep = true;
  all.push_back(wild("i:u, indices NULL", without(indexed("i", utf8), 1)));
  Node empty = fill(utf8, rows, false);
  empty.buffers[1] = Buffer::of(std::string(24, '\0').data(), 24);
  all.push_back({"u of empty strings", empty});
  empty.buffers[2] = Buffer::none();
  all.push_back({"u of empty strings without characters", empty});
  all.push_back({"u of no rows whose offsets do not begin at 0", window(fill(utf8, rows, false), 2, 0)});
}

void add_structure(std::vector<Case>& all) {
  all.push_back(wild("l, n_buffers 1", bent(fill(i64, rows, false), [](Node& node) { node.n_buffers = 1; })));
  all.push_back(wild("l, n_buffers 3", bent(fill(i64, rows, false), [](Node& node) { node.n_buffers = 3; })));
  all.push_back(wild("u, n_buffers 2", bent(fill(utf8, rows, false), [](Node& node) { node.n_buffers = 2; })));
  all.push_back(wild("+s<i,u>, n_buffers 0", bent(fill(pair, rows, false), [](Node& node) { node.n_buffers = 0; })));
  all.push_back(wild("vu, n_buffers 3", bent(fill(of("vu"), rows, false), [](Node& node) { node.n_buffers = 3; })));
  all.push_back(wild("+s<i,u> of one child", bent(fill(pair, rows, false), [](Node& node) { node.n_children = 1; })));
  all.push_back(wild("+s<i,u> with a short child", bent(fill(pair, rows, false), [](Node& node) { node.child(0).length = 3; })));
  all.push_back({"+s<i,u> with long children", bent(fill(pair, rows, false), [](Node& node) { node.length = 3; })});
  all.push_back(wild("+w:2<i> with a short child", bent(fill(of("+w:2", {i32}), rows, false), [](Node& node) {
    node.child(0).length = 3;
  })));
  all.push_back({"l, released", fill(i64, rows, false)});
  all.back().released = true;
  all.push_back(wild("unknown format", bent(fill(i64, rows, false), [](Node& node) { node.format = "q"; })));
  all.push_back(wild("empty format", bent(fill(i64, rows, false), [](Node& node) { node.format = ""; })));
}

}  // namespace

std::vector<Case> odd_arrays() {
  std::vector<Case> all;
  add_devices(all);
  add_lengths(all);
  add_nulls(all);
  add_addresses(all);
  add_structure(all);
  return all;
}
