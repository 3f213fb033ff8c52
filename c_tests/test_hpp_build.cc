// bowstring.hpp: builders keep what fails, nothing thrown crosses into C, and memory may be short.
#include "hpp_samples.h"

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <functional>

namespace {

void a_failure_takes_nothing() {
  const column memory;
  {
    auto builder = memory.builder();
    builder.node(1);  // one node too many
    auto made = builder.try_finish();
    CHECK(!made && made.status() == BOWSTRING_INVALID_ARGUMENT);
    CHECK(memory.uses() == all);
    bool thrown = false;
    try {
      builder.finish();
    } catch (const bowstring::error& e) {
      thrown = std::strstr(e.what(), "expected 4 nodes") != nullptr && e.status() == BOWSTRING_INVALID_ARGUMENT;
    }
    CHECK(thrown);
  }
  CHECK(memory.uses() == none);

  auto builder = memory.builder();
  auto raw = builder.finish();
  const auto other = bowstring::type::parse("utf8");
  auto imported = bowstring::array::try_import(raw, other);
  CHECK(!imported && imported.status() == BOWSTRING_INVALID_DATA);
  CHECK(raw->array.release != nullptr);
  raw.reset();
  CHECK(memory.uses() == none);

  // What goes wrong on the way is told at the end, and only the first of it.
  refuses(bowstring::array_builder("int32").no_buffer().node(1), "expected a node before its buffers");
  refuses(bowstring::array_builder("list<").no_buffer(), "found the end");
  refuses(bowstring::array_builder("int32").node(1).no_buffer().buffer(std::shared_ptr<std::string>()), "found NULL");
  refuses(bowstring::array_builder("int32").add(bowstring::column(1).buffer(std::shared_ptr<int[]>(), 3)), "found NULL");
}

// Through a struct whose release is not the library's, so that it asks for what it has to read.
bowstring::array foreign(const column& memory) {
  auto builder = memory.builder();
  auto host = std::make_shared<bowstring::unique_host_array>(
      bowstring::array::import(builder.finish(), builder.type()).export_host());
  ArrowArray raw = *host->get();
  raw.private_data = new std::shared_ptr<bowstring::unique_host_array>(host);
  raw.release = [](ArrowArray* array) {
    delete static_cast<std::shared_ptr<bowstring::unique_host_array>*>(array->private_data);
    array->release = nullptr;
  };
  return bowstring::array::import(bowstring::unique_host_array::take(&raw), builder.type().export_schema());
}

void exceptions_of_a_reader_become_errors() {
  const column memory;
  {
    const auto array = foreign(memory);
    int calls = 0;
    std::function<void(void*, const void*, std::size_t)> read = [&](void* dst, const void* src, std::size_t n) {
      calls++;
      std::memcpy(dst, src, n);
    };
    auto sized = array.resolve_sizes_with(read);
    CHECK(calls > 0 && sized.buffers()[7].size_bytes == 6);
    CHECK(array.try_resolve_sizes_with(read)->buffers()[7].size_bytes == 6);

    read = [](void*, const void*, std::size_t) { throw std::out_of_range("no such memory"); };
    auto failed = array.try_resolve_sizes_with(read);
    CHECK(!failed && failed.status() == BOWSTRING_CALLBACK_ERROR);
    CHECK_HAS(failed.record().message, "it threw: no such memory");
    bool caused = false;
    try {
      array.resolve_sizes_with(read);
    } catch (const bowstring::error& e) {
      CHECK(e.status() == BOWSTRING_CALLBACK_ERROR);
      CHECK_HAS(e.what(), "it threw: no such memory");
      try {
        std::rethrow_exception(e.cause());
      } catch (const std::out_of_range& cause) {
        caused = std::strcmp(cause.what(), "no such memory") == 0;
      }
    }
    CHECK(caused);

    // An empty function throws as well; so does what is no exception, or has more to say than the record has room for.
    read = nullptr;
    CHECK(array.try_resolve_sizes_with(read).status() == BOWSTRING_CALLBACK_ERROR);
    auto strange = array.try_resolve_sizes_with([](void*, const void*, std::size_t) { throw 7; });
    CHECK_HAS(strange.record().message, "it threw what is not a std::exception");
    for (int shift = 0; shift < 3; shift++) {
      const auto longest = array.try_resolve_sizes_with([&](void*, const void*, std::size_t) {
        std::string text(static_cast<std::size_t>(shift), 'x');
        while (text.size() < 2000) text += "\u20ac";
        throw std::runtime_error(text);
      });
      const std::string_view said = longest.record().message;
      CHECK(said.size() >= sizeof(BowstringError::message) - 4 && said.size() < sizeof(BowstringError::message));
      CHECK(said.substr(said.size() - 3) == "\u20ac");
    }

    auto numbered = array.try_resolve_sizes_with([](void*, const void*, std::size_t) { return 42; });
    CHECK(numbered.status() == BOWSTRING_CALLBACK_ERROR && numbered.record().native_code == 42);
    CHECK(memory.uses() == all);
  }
  CHECK(memory.uses() == none);
}

std::string heard;

void exceptions_of_a_release_go_no_further() {
  static const std::int32_t number = 5;
  bowstring::set_unreported_handler([](const std::exception_ptr& thrown) noexcept {
    try {
      std::rethrow_exception(thrown);
    } catch (const std::exception& e) {
      heard += e.what();
    }
  });
  int released = 0, destroyed = 0, handle = 0;
  {
    bowstring::array_builder builder("int32");
    bowstring::placement place(ARROW_DEVICE_CUDA, 0);
    place.owner(bowstring::on_release([&] {
      released++;
      throw std::runtime_error("the owner;");
    }));
    place.event(&handle, [&](void* event) {
      CHECK(event == &handle && released == 2);
      destroyed++;
      throw std::runtime_error("the event;");
    });
    builder.place(std::move(place)).node(1).no_buffer();
    builder.buffer(&number, 4, bowstring::on_release([&] {
      CHECK(released == 0);
      released++;
      throw std::runtime_error("the buffer;");
    }));
    auto array = bowstring::array::import(builder.finish(), builder.type());
    CHECK(released == 0 && destroyed == 0);
  }
  CHECK(released == 2 && destroyed == 1);
  CHECK(heard == "the buffer;the owner;the event;");

  // Without anybody to tell, and from a builder that never finished.
  bowstring::set_unreported_handler(nullptr);
  {
    bowstring::array_builder builder("int32");
    builder.place(std::move(bowstring::placement(ARROW_DEVICE_CUDA, 0).event(&handle, [&](void*) {
      destroyed++;
      throw 1;
    })));
  }
  CHECK(destroyed == 2);
}

// ---- the builder ----

template <class T>
std::shared_ptr<std::vector<T>> shared(std::initializer_list<T> values) {
  return std::make_shared<std::vector<T>>(values);
}

void columns_are_built_recursively() {
  const auto indices = shared<std::int8_t>({9, 1, 0, 1});
  const auto words = std::make_shared<const std::string>("onetwo");
  const auto ends = std::shared_ptr<std::int32_t[]>(new std::int32_t[3]{0, 3, 6});
  const auto numbers = std::make_shared<std::array<double, 4>>(std::array<double, 4>{1, 2, 3, 4});
  const auto valid = std::make_shared<std::array<std::uint8_t, 1>>(std::array<std::uint8_t, 1>{0x0B});
  {
    bowstring::column tree(3, 0, 0);
    tree.no_buffer();
    tree.child(bowstring::column(3, -1, 1).buffer(valid).buffer(numbers));
    tree.child(bowstring::column(3, 0, 1).no_buffer().buffer(indices).dictionary(
        bowstring::column(2).no_buffer().buffer(ends, 3).buffer(words)));
    bowstring::array_builder builder("struct<a: float64, d: dictionary<int8, utf8>>");
    auto made = builder.add(tree).finish();
    const auto array = bowstring::array::import(std::move(made), builder.type());
    tree = bowstring::column(0);
    CHECK(indices.use_count() == 2 && ends.use_count() == 2 && words.use_count() == 2 && valid.use_count() == 2);
    CHECK(array.length() == 3 && array.nodes().size() == 4);
    const auto a = array.child(0), d = array.child(1);
    CHECK(a.null_count() == 1 && a.nodes()[0].offset == 1 && a.buffers()[1].data == numbers->data());
    CHECK(d.dictionary().buffers()[1].data == ends.get() && d.dictionary().buffers()[2].size_bytes == 6);
    CHECK(d.buffers()[1].first == 1 && d.buffers()[1].count == 3);
    throws(BOWSTRING_INVALID_ARGUMENT, [&] { a.dictionary(); });
    CHECK(array.slice(1, 2).child(0).null_count() == 1);
    throws(BOWSTRING_INVALID_ARGUMENT, [&] { array.slice(1, 3); });
  }
  CHECK(indices.use_count() == 1 && ends.use_count() == 1 && words.use_count() == 1 && numbers.use_count() == 1);
}

void a_part_of_shared_memory_is_a_buffer() {
  struct pool {
    std::array<std::int16_t, 100> numbers{};
  };
  auto owner = std::make_shared<pool>();
  {
    bowstring::array_builder builder("int16");
    builder.node(10).no_buffer().buffer(owner->numbers.data() + 40, 20, owner);
    const auto array = bowstring::array::import(builder.finish(), builder.type());
    CHECK(owner.use_count() == 2 && array.buffers()[1].data == owner->numbers.data() + 40);
  }
  CHECK(owner.use_count() == 1);
  // Too small for its length: refused, and the builder still owns it.
  bowstring::array_builder builder("int16");
  builder.node(11).no_buffer().buffer(owner->numbers.data(), 20, owner);
  const auto small = builder.try_finish();
  CHECK(small.status() == BOWSTRING_INVALID_DATA && owner.use_count() == 2);
}

void placements_own_event_and_memory() {
  int handle = 0;
  std::vector<std::string> order;
  auto whole = bowstring::on_release([&] { order.emplace_back("whole"); });
  std::weak_ptr<const void> watched = whole;
  {
    bowstring::array_builder builder("int32");
    builder.place(std::move(bowstring::placement(ARROW_DEVICE_CUDA, 3).owner(std::move(whole)).event(&handle, [&](void*) {
      order.emplace_back("event");
    })));
    builder.node(5).no_buffer().buffer(&handle, 20, nullptr);
    auto raw = builder.finish();
    CHECK(raw->device_type == ARROW_DEVICE_CUDA && raw->device_id == 3);
    CHECK(*static_cast<void**>(raw->sync_event) == &handle);
    auto array = bowstring::array::import(std::move(raw), builder.type());
    CHECK(array.device().type == ARROW_DEVICE_CUDA && array.device().id == 3);
    auto kept = array.buffer(1);
    CHECK(kept.info().sync_event == array.sync_event() && kept.device().id == 3);
    throws(BOWSTRING_SYNC_REQUIRED, [&] { array.export_host(); });
    array = {};
    CHECK(order.empty() && !watched.expired());
  }
  CHECK((order == strings{"whole", "event"}) && watched.expired());

  // Placements that nobody takes let go by themselves; a later one takes the place of an earlier one.
  order.clear();
  {
    bowstring::placement place;
    const auto named = [&](const char* name) { return [&order, name](void*) { order.emplace_back(name); }; };
    place.event(&handle, named("first")).event(&handle, named("second")).event(&handle, named("third"));
    place.owner(bowstring::on_release([&] { order.emplace_back("owner"); })).event(nullptr, named("never"));
    CHECK((order == strings{"first", "second", "third"}));
    bowstring::placement moved(std::move(place));
    place = std::move(moved);
    CHECK(order.size() == 3);
    // On a device without events there is none to wait on.
    auto refused = bowstring::buffer::try_wrap(&handle, 4, nullptr, place.event(&handle));
    CHECK(refused.status() == BOWSTRING_INVALID_ARGUMENT && order.size() == 3);
  }
  CHECK((order == strings{"first", "second", "third", "owner"}));
}

void arrays_come_apart_and_together() {
  const column memory;
  auto builder = memory.builder();
  const auto array = bowstring::array::import(builder.finish(), builder.type());
  auto taken = array.take_apart();
  CHECK(taken.nodes.size() == 4 && taken.buffers.size() == 8 && taken.buffers[4].data == memory.numbers->data());
  taken.nodes[0].length = 1;
  bowstring::array_builder again(array.type(), std::move(taken));
  const auto shorter = bowstring::array::import(again.finish(), array.type());
  CHECK(shorter.length() == 1 && shorter.buffers()[4].data == memory.numbers->data());
  auto dropped = array.take_apart();
  dropped = array.take_apart();
  dropped.clear();
  CHECK(dropped.buffers.empty());

  // A single buffer goes into an array of its own.
  bowstring::array_builder numbers("int32");
  numbers.node(3).no_buffer().buffer(array.buffer(4));
  const auto alone = bowstring::array::import(numbers.finish(), numbers.type());
  CHECK(alone.buffers()[1].data == memory.numbers->data());
  refuses(bowstring::array_builder("int32").node(3).no_buffer().buffer(bowstring::buffer()), "NULL");
  throws(BOWSTRING_INVALID_ARGUMENT, [] { bowstring::array().take_apart(); });
}

// ---- without memory ----

std::atomic<long> left_to_allocate{-1};

void* allocate(std::size_t n) noexcept {
  if (left_to_allocate >= 0 && left_to_allocate-- == 0) return nullptr;
  return std::malloc(n == 0 ? 1 : n);
}

void memory_that_is_not_there_is_a_failure() {
  const column memory;
  const auto type = bowstring::type::parse("list<struct<n: int32, s: utf8>>");
  int destroyed = 0, event = 0;
  long failures = 0;
  for (long n = 0;; n++) {
    bool done = false, has_event = false;
    {
      bowstring::array_builder builder(type);
      left_to_allocate = n;
      bowstring::placement place(ARROW_DEVICE_CUDA, 0);
      place.event(&event, [&](void*) { destroyed++; });
      has_event = place.get()->event != nullptr;
      bowstring::column numbers(3), text(3), record(3), list(2);
      numbers.no_buffer().buffer(memory.numbers);
      text.no_buffer().buffer(memory.text_offsets).buffer(memory.text);
      record.no_buffer().child(std::move(numbers)).child(std::move(text));
      list.no_buffer().buffer(memory.list_offsets).child(std::move(record));
      builder.place(std::move(place)).add(list);
      auto made = builder.try_finish();
      left_to_allocate = -1;
      done = made.has_value();
      CHECK(done || made.status() == BOWSTRING_OUT_OF_MEMORY);
      failures += !done;
    }
    CHECK(memory.uses() == none && destroyed == has_event);
    destroyed = 0;
    if (done) break;
  }
  // Where something else takes the place of this file's operator new, no allocation fails.
  const bool is_ours = [] {
    left_to_allocate = 0;
    delete new (std::nothrow) int;
    return left_to_allocate.exchange(-1) != 0;
  }();
  CHECK(failures > 15 || !is_ours);

  const auto array = bowstring::array::import(memory.builder().finish(), type);
  const std::vector<bowstring::type> children{type};
  const auto fails = [&](auto call) {
    long n = 0;
    for (;; n++) {
      left_to_allocate = n;
      const auto status = call();
      left_to_allocate = -1;
      if (status == BOWSTRING_OK) break;
      CHECK_INT(status, BOWSTRING_OUT_OF_MEMORY);
    }
    CHECK(n > 0 || !is_ours);
  };
  fails([&] { return array.try_to_string().status(); });
  fails([&] { return array.try_take_apart().status(); });
  fails([&] { return array.try_with_owner(memory.text).status(); });
  fails([&] { return type.try_layout().status(); });
  fails([&] { return bowstring::type::try_make("+l", "", 0, children).status(); });
  fails([&] { return bowstring::buffer::try_wrap(memory.text->data(), 6, memory.text).status(); });
  CHECK(memory.uses() == all);
}

}  // namespace

[[gnu::noinline]] void* operator new(std::size_t n) {
  if (void* memory = allocate(n)) return memory;
  throw std::bad_alloc();
}
[[gnu::noinline]] void* operator new(std::size_t n, const std::nothrow_t&) noexcept { return allocate(n); }
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, const std::nothrow_t&) noexcept { std::free(memory); }

int main() {
  a_failure_takes_nothing();
  exceptions_of_a_reader_become_errors();
  exceptions_of_a_release_go_no_further();
  columns_are_built_recursively();
  a_part_of_shared_memory_is_a_buffer();
  placements_own_event_and_memory();
  arrays_come_apart_and_together();
  memory_that_is_not_there_is_a_failure();
  const auto live = bowstring::live_counts();
  CHECK(live.types + live.arrays + live.buffers + live.blocks == 0);
  return check_end(75);
}
