#include "hunt/schedule_file.h"

#include <gtest/gtest.h>

namespace heddle::hunt {
namespace {

constexpr const char* kText =
    "heddle-schedule 1\n"
    "program shop\n"
    "command ./shop 3 'two words' 'it'\\''s' ''\n"
    "build-id 5c0fe1\n"
    "points shared\n"
    "strategy random seed 117\n"
    "at 2.14 unlock 1 shop+0x1249\n"
    "at 1.20 wake 3\n"
    "end 231 points hash 9c21f00d12345678\n";

TEST(ScheduleFile, ReadsWhatItPrints) {
  const Result<Schedule> schedule = parse_schedule(kText, "x");
  ASSERT_TRUE(schedule.ok()) << schedule.error().message;
  EXPECT_EQ(schedule->program, "shop");
  EXPECT_EQ(schedule->command, (std::vector<std::string>{"./shop", "3", "two words", "it's", ""}));
  EXPECT_EQ(schedule->points, "shared");
  EXPECT_EQ(schedule->seed, 117u);
  ASSERT_EQ(schedule->decisions.size(), 2u);
  EXPECT_EQ(schedule->decisions[0], (Decision{2, 14, "unlock", 1, "shop+0x1249"}));
  EXPECT_EQ(schedule->decisions[1], (Decision{1, 20, "wake", 3, ""}));
  ASSERT_TRUE(schedule->end.has_value());
  EXPECT_EQ(schedule->end->hash, 0x9c21f00d12345678u);
  EXPECT_EQ(print_schedule(*schedule), kText);
}

TEST(ScheduleFile, IgnoresCommentsAndWhatAKilledRunLeft) {
  std::string text = std::string(kText) + "# by hand\n\n";
  text.append(100, '\0');
  const Result<Schedule> schedule = parse_schedule(text, "x");
  ASSERT_TRUE(schedule.ok()) << schedule.error().message;
  EXPECT_EQ(schedule->decisions.size(), 2u);
}

TEST(ScheduleFile, NamesTheBadLine) {
  const auto message = [](const std::string& text) {
    const Result<Schedule> schedule = parse_schedule(text, "s");
    return schedule.ok() ? std::string("no error") : schedule.error().message;
  };
  EXPECT_NE(message("").find("s is empty"), std::string::npos);
  EXPECT_NE(message("at 1.2 lock 3\n").find("not a schedule"), std::string::npos);
  EXPECT_NE(message("heddle-schedule 2\n").find("another version"), std::string::npos);
  EXPECT_NE(message("heddle-schedule 1\nat 1 lock 3\n").find("s:2: "), std::string::npos);
  EXPECT_NE(message("heddle-schedule 1\n\nat 1.2 lock\n").find("s:3: "), std::string::npos);
  EXPECT_NE(message("heddle-schedule 1\nsurprise\n").find("surprise"), std::string::npos);
  EXPECT_NE(message("heddle-schedule 1\nend x points hash 1\n").find("s:2: "), std::string::npos);
}

}  // namespace
}  // namespace heddle::hunt
