#include <bowstring.hpp>
#include <iostream>

int main() {
  using numbers = std::vector<std::int32_t>;
  auto list_offsets = std::make_shared<numbers>(numbers{0, 2, 3});
  auto values = std::make_shared<numbers>(numbers{1, 2, 3});
  auto text_offsets = std::make_shared<numbers>(numbers{0, 1, 3, 6});
  auto text = std::make_shared<std::string>("abbccc");

  using bowstring::column;
  bowstring::array_builder builder("list<struct<n: int32, s: utf8>>");
  builder.add(column(2).no_buffer().buffer(list_offsets).child(
      column(3)
          .no_buffer()
          .child(column(3).no_buffer().buffer(values))
          .child(column(3).no_buffer().buffer(text_offsets).buffer(text))));
  ArrowDeviceArray exported = {};
  builder.finish().move_to(&exported);  // for anybody who knows Arrow's structs

  auto array = bowstring::array::import(bowstring::unique_device_array::take(&exported), builder.type());
  std::cout << array.to_string();
  for (const auto& node : array.nodes()) std::cout << node.name << ": " << node.length << " values\n";

  auto kept = array.buffer(4);  // n's numbers, and nothing else
  array = {};
  return values.use_count() == 2 && text.use_count() == 1 && kept.data() == values->data() ? 0 : 1;
}
