// bowstring.hpp: owners move, handles count, and ranges show what is there.
#include "hpp_samples.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <thread>

namespace {

void a_buffer_keeps_its_own_owner() {
  const column memory;
  bowstring::array array;
  {
    auto builder = memory.builder();
    array = bowstring::array::import(builder.finish(), builder.type());
  }
  CHECK(memory.uses() == all);
  auto kept = array.buffer(4);
  CHECK(kept.data() == memory.numbers->data() && kept.size() == 12);
  array = {};
  CHECK((memory.uses() == std::array<long, 4>{1, 2, 1, 1}));
  auto part = kept.slice(4, 4);
  kept = {};
  CHECK((memory.uses() == std::array<long, 4>{1, 2, 1, 1}));
  CHECK(part.data() == memory.numbers->data() + 1);
  part = {};
  CHECK(memory.uses() == none);
}

void owners_move_and_handles_count() {
  const column memory;
  auto builder = memory.builder();
  auto first = builder.finish();
  auto second = std::move(first);
  CHECK(first->array.release == nullptr && second->array.release != nullptr);
  first = std::move(second);
  auto array = bowstring::array::import(std::move(first), builder.type());
  auto copy = array;
  array = {};
  CHECK(memory.uses() == all);
  CHECK(copy.length() == 2 && copy.null_count() == 0);

  auto exported = copy.export_device();
  auto schema = copy.type().export_schema();
  auto again = bowstring::array::import(std::move(exported), std::move(schema));
  auto host = again.export_host();
  CHECK(host->n_buffers == 2 && host->buffers[1] == memory.list_offsets->data());
  copy = {};
  again = {};
  CHECK(memory.uses() == all);
  host.reset();
  CHECK(memory.uses() == none);
}

void ranges_show_nodes_and_buffers() {
  const column memory;
  auto builder = memory.builder();
  const auto array = bowstring::array::import(builder.finish(), builder.type());
  strings names;
  for (const auto& node : array.nodes()) names.emplace_back(node.name);
  CHECK((names == strings{"", "item", "n", "s"}));
  const auto buffers = array.buffers();
  CHECK(buffers.size() == 8);
  CHECK(std::count_if(buffers.begin(), buffers.end(), [](const auto& b) { return b.data != nullptr; }) == 4);
  CHECK(array.child(0).child(1).type().to_string() == "s: utf8");
  CHECK(array.slice(1, 1).length() == 1);
  CHECK(array.to_string().find("list<struct<n: int32, s: utf8>>  length 2") == 0);
  bool thrown = false;
  try {
    array.child(1);
  } catch (const bowstring::error& e) {
    thrown = e.status() == BOWSTRING_INVALID_ARGUMENT;
  }
  CHECK(thrown);
}

void borrowed_arrays_and_further_owners() {
  const column memory;
  auto builder = memory.builder();
  const auto raw = builder.finish();
  auto owner = std::make_shared<int>(1);
  {
    auto array = bowstring::array::import_borrowed(raw.get(), builder.type(), owner);
    auto more = array.with_owner(owner);
    CHECK(owner.use_count() == 3);
    array = {};
    CHECK(owner.use_count() == 3 && more.length() == 2);
  }
  CHECK(owner.use_count() == 1 && raw);
  throws(BOWSTRING_INVALID_ARGUMENT, [&] { bowstring::array::import_borrowed(nullptr, builder.type(), owner); });
  throws(BOWSTRING_INVALID_ARGUMENT, [&] { bowstring::array().with_owner(owner); });
  CHECK(owner.use_count() == 1);
}

void buffers_are_wrapped_allocated_and_read() {
  auto text = std::make_shared<std::string>("abcdef");
  {
    const auto wrapped = bowstring::buffer::wrap(text->data(), 6, text);
    CHECK(text.use_count() == 2 && wrapped.size() == 6 && wrapped.device().type == ARROW_DEVICE_CPU);
    char read[3] = "";
    wrapped.slice(1, 4).read(2, read, 2);
    CHECK_STR(read, "de");
    throws(BOWSTRING_INVALID_ARGUMENT, [&] { wrapped.slice(5, 2); });
    throws(BOWSTRING_INVALID_ARGUMENT, [&] { wrapped.read(5, read, 2); });
  }
  throws(BOWSTRING_INVALID_ARGUMENT, [&] { bowstring::buffer::wrap(nullptr, 6, text); });
  CHECK(text.use_count() == 1);
  const auto [made, data] = bowstring::buffer::allocate(100);
  CHECK(made.data() == data && made.size() == 100 && reinterpret_cast<std::uintptr_t>(data) % 64 == 0);
  throws(BOWSTRING_INVALID_ARGUMENT, [] { bowstring::buffer::allocate(-1); });
  CHECK(bowstring::buffer().info().data == nullptr && bowstring::buffer().size() == 0);
  auto same = made;
  CHECK(same.get() == made.get());
  auto* raw = same.release();
  CHECK(!same && bowstring::buffer::take(raw).size() == 100);
}

template <class Iterator>
void moves_at_random(const Iterator begin, const Iterator end) {
  auto it = begin;
  CHECK(it == begin && !(it != begin) && begin < end && end > begin && begin <= it && end >= it);
  CHECK(it++ == begin && it-- == begin + 1 && ++it == 1 + begin && --it == begin);
  CHECK((it += 2) - begin == 2 && (it -= 1) == end - (end - begin) + 1);
  CHECK(begin[1].name == it->name && (*it).name == it->name);
}

void ranges_behave_like_others() {
  const column memory;
  auto builder = memory.builder();
  const auto array = bowstring::array::import(builder.finish(), builder.type());
  const auto nodes = array.nodes();
  moves_at_random(nodes.begin(), nodes.end());
  const auto total = std::accumulate(nodes.begin(), nodes.end(), std::int64_t{0},
                                     [](std::int64_t sum, const BowstringNodeInfo& node) { return sum + node.length; });
  CHECK(total == 11);
  const auto found = std::find_if(nodes.begin(), nodes.end(), [](const auto& node) { return node.name[0] == 's'; });
  CHECK(found - nodes.begin() == 3 && found->n_buffers == 3);
  std::vector<BowstringBufferInfo> copied;
  const auto all_buffers = array.buffers();
  std::copy(all_buffers.begin(), all_buffers.end(), std::back_inserter(copied));
  CHECK(copied.size() == 8 && copied[4].data == memory.numbers->data());
  // The range keeps what it shows, so that it may come from something that ends with the statement.
  std::size_t counted = 0;
  for (const auto& node : bowstring::array::import(array.export_device(), array.type()).nodes()) counted += node.n_buffers;
  CHECK(counted == 8);
  CHECK(array.nodes().at(3).n_buffers == 3 && array.nodes()[4].format == nullptr);
  throws(BOWSTRING_INVALID_ARGUMENT, [&] { array.nodes().at(4); });
  CHECK(!array.buffers().try_at(8));
  const bowstring::array nothing;
  CHECK(nothing.nodes().empty() && nothing.buffers().begin() == nothing.buffers().end() && nothing.length() == 0);
  CHECK(bowstring::type().nodes().empty() && builder.type().nodes().size() == 4);
  std::string formats;
  for (const auto& node : builder.type().nodes()) formats.append(node.format).append(" ");
  CHECK(formats == "+l +s i u ");
}

int tensors_deleted;

}  // namespace

// As far as every version of DLPack has them.
struct DLManagedTensorVersioned {
  std::uint32_t major, minor;
  void* manager_ctx;
  void (*deleter)(DLManagedTensorVersioned*);
  std::uint64_t flags;
};
struct DLManagedTensor {
  char tensor[48];
  void* manager_ctx;
  void (*deleter)(DLManagedTensor*);
};

namespace {

template <class Tensor>
Tensor* new_tensor() {
  auto* tensor = new Tensor{};
  tensor->deleter = [](Tensor* self) {
    tensors_deleted++;
    delete self;
  };
  return tensor;
}

template <class Owner, class Tensor>
void tensors_are_let_go_once() {
  tensors_deleted = 0;
  {
    Owner first(new_tensor<Tensor>());
    Owner second = std::move(first);
    CHECK(!first && second && tensors_deleted == 0);
    first = std::move(second);
    auto& itself = first;
    first = std::move(itself);
    CHECK(first && tensors_deleted == 0);
    first.reset(new_tensor<Tensor>());
    CHECK(tensors_deleted == 1);
    *second.put() = new_tensor<Tensor>();
    *second.put() = first.release();
    CHECK(tensors_deleted == 2 && second->deleter != nullptr && first.get() == nullptr);
    std::thread([moved = std::move(second)] { CHECK(moved.get() != nullptr); }).join();
    CHECK(tensors_deleted == 3);
  }
  CHECK(tensors_deleted == 3);
}

void every_raw_struct_has_an_owner() {
  static int released;
  released = 0;
  const auto check = [](auto owner, auto& raw, auto release_of) {
    using raw_type = std::remove_reference_t<decltype(raw)>;
    release_of(raw) = [](auto* self) {
      released++;
      self->release = nullptr;
    };
    const int before = released;
    owner = decltype(owner)::take(&raw);
    CHECK(owner && release_of(raw) == nullptr);
    auto moved = std::move(owner);
    CHECK(!owner && moved && released == before);
    raw_type elsewhere;
    moved.move_to(&elsewhere);
    CHECK(!moved && release_of(elsewhere) != nullptr);
    *moved.put() = elsewhere;
    auto& itself = moved;
    moved = std::move(itself);
    CHECK(moved && released == before);
    moved.reset();
    CHECK(!moved && released == before + 1);
  };
  const auto own = [](auto& raw) -> auto& { return raw.release; };
  ArrowSchema schema{};
  ArrowArray array{};
  ArrowDeviceArray device_array{};
  ArrowArrayStream stream{};
  ArrowDeviceArrayStream device_stream{};
  check(bowstring::unique_schema(), schema, own);
  check(bowstring::unique_host_array(), array, own);
  check(bowstring::unique_device_array(), device_array, [](auto& raw) -> auto& { return raw.array.release; });
  check(bowstring::unique_host_stream(), stream, own);
  check(bowstring::unique_device_stream(), device_stream, own);
  CHECK(released == 5);
}

void results_hold_a_value_or_a_record() {
  static_assert(!std::is_copy_constructible_v<bowstring::unique_device_array>);
  static_assert(!std::is_copy_constructible_v<bowstring::unique_tensor>);
  static_assert(!std::is_copy_constructible_v<bowstring::placement> && !std::is_copy_constructible_v<bowstring::parts>);
  static_assert(std::is_nothrow_move_constructible_v<bowstring::array_builder>);
  static_assert(std::is_nothrow_move_assignable_v<bowstring::unique_schema>);
  bowstring::result<std::string> good(std::string("text"));
  CHECK(good && good.status() == BOWSTRING_OK && *good == "text" && good->size() == 4 && good.value() == "text");
  CHECK(good.record().message[0] == '\0');
  BowstringError record{};
  record.status = BOWSTRING_UNSUPPORTED;
  bowstring::result<std::string> bad(record);
  throws(BOWSTRING_UNSUPPORTED, [&] { bad.value(); });
  throws(BOWSTRING_UNSUPPORTED, [&] { std::move(bad).value(); });
  throws(BOWSTRING_UNSUPPORTED, [&] { bowstring::result<void>(record).value(); });
  bowstring::result<void>().value();
  throws(BOWSTRING_INVALID_ARGUMENT, [] { bowstring::set_callback_scope(nullptr, nullptr); });
  CHECK(bowstring::version().size() >= 5);
}

void types_compare_and_print() {
  const auto type = bowstring::type::parse("struct<a: int32 not null, b: list<utf8>>");
  auto schema = type.export_schema();
  CHECK(std::strcmp(schema->format, "+s") == 0);
  CHECK(bowstring::type::import(std::move(schema)) == type);
  CHECK(type.child(1) != type.child(0));
  CHECK(type.to_string() == "struct<a: int32 not null, b: list<utf8>>");
  const auto made = bowstring::type::make("+s", "", ARROW_FLAG_NULLABLE, {type.child(0), type.child(1)});
  CHECK(made == type && bowstring::type::import_copy(made.export_schema().get()) == type);
  const auto coded = bowstring::type::make("c", "d", 0, {}, bowstring::type::parse("utf8"));
  CHECK(coded.dictionary().to_string() == "utf8");
  CHECK(type.layout().size() == 8);
  throws(BOWSTRING_INVALID_DATA, [&] { bowstring::type::make("nonsense"); });
  throws(BOWSTRING_INVALID_ARGUMENT, [&] { bowstring::type().to_string(); });
  throws(BOWSTRING_INVALID_ARGUMENT, [&] { type.dictionary(); });
  throws(BOWSTRING_INVALID_ARGUMENT, [&] { type.child(2); });
  throws(BOWSTRING_RELEASED, [&] { bowstring::type::import(bowstring::unique_schema()); });
  bowstring::unique_schema with;
  const column memory;
  auto builder = memory.builder();
  const auto array = bowstring::array::import(builder.finish(), builder.type());
  CHECK(array.export_device(&with) && bowstring::type::import(std::move(with)) == array.type());
  CHECK(array.export_host(nullptr, &with) && bowstring::array::try_import_borrowed(nullptr, type, nullptr).status() != 0);
  auto bad = bowstring::type::try_parse("list<");
  CHECK(!bad && bad.status() == BOWSTRING_INVALID_ARGUMENT && bad.record().message[0] != '\0');
}

}  // namespace

int main() {
  a_buffer_keeps_its_own_owner();
  owners_move_and_handles_count();
  ranges_show_nodes_and_buffers();
  borrowed_arrays_and_further_owners();
  buffers_are_wrapped_allocated_and_read();
  ranges_behave_like_others();
  tensors_are_let_go_once<bowstring::unique_tensor, DLManagedTensorVersioned>();
  tensors_are_let_go_once<bowstring::unique_legacy_tensor, DLManagedTensor>();
  every_raw_struct_has_an_owner();
  results_hold_a_value_or_a_record();
  types_compare_and_print();
  const auto live = bowstring::live_counts();
  CHECK(live.types + live.arrays + live.buffers + live.blocks == 0);
  return check_end(95);
}
