// bowstring.hpp as a project without exceptions and RTTI has it: only what gives a result, and all of it.
#include <bowstring.hpp>

#include <cstdio>
#include <cstring>

#if defined(__cpp_exceptions) || defined(__cpp_rtti)
#error "this is to be compiled without exceptions and RTTI"
#endif

// Without the C checks, so that the header is the first that is included.
static int checks;
#define CHECK(condition) \
  if (checks++, !(condition)) return std::fprintf(stderr, "line %d: %s\n", __LINE__, #condition), 1

template <class T, class = void>
struct throws_in_name : std::false_type {};
template <class T>
struct throws_in_name<T, decltype(void(std::declval<T>().value()))> : std::true_type {};
static_assert(!throws_in_name<bowstring::result<int>>::value, "nothing that throws is there");

static int run() {
  auto numbers = std::make_shared<std::vector<std::int32_t>>(std::vector<std::int32_t>{0, 2, 3});
  auto text = std::make_shared<std::string>("abc");
  int released = 0;
  {
    bowstring::array_builder builder("struct<n: int32, s: utf8>");
    builder.add(bowstring::column(2)
                    .no_buffer()
                    .child(bowstring::column(2).no_buffer().buffer(numbers))
                    .child(bowstring::column(2).no_buffer().buffer(numbers).buffer(text)));
    auto raw = builder.try_finish();
    CHECK(raw && numbers.use_count() == 3);
    auto array = bowstring::array::try_import(*raw, builder.type());
    CHECK(array && array->length() == 2 && array->nodes()[0].null_count == 0);
    auto owned = array->try_with_owner(bowstring::on_release([&] { released++; }));
    CHECK(owned && owned->try_child(1) && !owned->try_child(2));
    auto schema = owned->type().try_export_schema();
    auto again = bowstring::type::try_import(*schema);
    CHECK(again && *again == builder.type());
    auto sized = owned->try_resolve_sizes_with([](void* dst, const void* src, std::size_t n) { std::memcpy(dst, src, n); });
    CHECK(sized && sized->buffers().size() == 6);
    std::int64_t total = 0;
    for (const auto& buffer : sized->buffers()) total += buffer.size_bytes;
    CHECK(total == 27);
    auto printed = sized->try_to_string();
    CHECK(printed && printed->find("struct<n: int32, s: utf8>") == 0);
    auto parts = sized->try_take_apart();
    CHECK(parts && parts->nodes.size() == 3);
    char read[3];
    auto buffer = sized->try_buffer(5);
    CHECK(buffer && buffer->try_read(0, read, 3) && std::memcmp(read, "abc", 3) == 0);
    CHECK(sized->try_null_count() && *sized->try_null_count() == 0);
    CHECK(!bowstring::try_set_callback_scope(nullptr, nullptr));
  }
  CHECK(numbers.use_count() == 1 && text.use_count() == 1 && released == 1);
  auto bad = bowstring::array_builder("list<").node(1).try_finish();
  CHECK(!bad && bad.status() == BOWSTRING_INVALID_ARGUMENT && bad.record().message[0] != '\0');
  const auto live = bowstring::live_counts();
  CHECK(live.types + live.arrays + live.buffers + live.blocks == 0);
  return 0;
}

int main() {
  if (run() != 0) return 1;
  std::printf("%d checks\n", checks);
  return checks < 14;
}
