// A nested column in memory that four shared pointers own, and checks of what the C++ wrapper refuses.
#ifndef HPP_SAMPLES_H
#define HPP_SAMPLES_H

#include <bowstring.hpp>

#include <array>

// check.h is C11.
#define _Thread_local thread_local
extern "C" {
#include "check.h"
}

using strings = std::vector<std::string>;

// Four shared pointers own the memory of one nested column.
struct column {
  std::shared_ptr<std::vector<std::int32_t>> list_offsets =
      std::make_shared<std::vector<std::int32_t>>(std::vector<std::int32_t>{0, 2, 3});
  std::shared_ptr<std::vector<std::int32_t>> numbers =
      std::make_shared<std::vector<std::int32_t>>(std::vector<std::int32_t>{1, 2, 3});
  std::shared_ptr<std::vector<std::int32_t>> text_offsets =
      std::make_shared<std::vector<std::int32_t>>(std::vector<std::int32_t>{0, 1, 3, 6});
  std::shared_ptr<std::string> text = std::make_shared<std::string>("abbccc");

  bowstring::array_builder builder() const {
    bowstring::array_builder builder("list<struct<n: int32, s: utf8>>");
    builder.node(2).no_buffer().buffer(list_offsets);
    builder.node(3).no_buffer();
    builder.node(3).no_buffer().buffer(numbers);
    builder.node(3).no_buffer().buffer(text_offsets).buffer(text);
    return builder;
  }

  std::array<long, 4> uses() const {
    return {list_offsets.use_count(), numbers.use_count(), text_offsets.use_count(), text.use_count()};
  }
};

inline constexpr std::array<long, 4> none{1, 1, 1, 1}, all{2, 2, 2, 2};

inline void refuses(bowstring::array_builder& builder, const char* words) {
  auto made = builder.try_finish();
  CHECK(!made && made.status() == BOWSTRING_INVALID_ARGUMENT);
  CHECK_HAS(made.record().message, words);
}

template <class Call>
void throws(BowstringStatus status, Call&& call) {
  bool thrown = false;
  try {
    call();
  } catch (const bowstring::error& e) {
    thrown = e.status() == status && e.record().status == status && e.what()[0] != '\0' && !e.cause();
  }
  CHECK(thrown);
}

#endif
