#include "experiments/data/examples/tasks/topics.hpp"

namespace heed {

std::span<Topic const> topics() {
  static std::vector<Topic> const all{
      {"people",
       {"king", "monk", "boy", "queen", "nun", "girl", "kings", "monks", "boys", "queens", "nuns", "girls"},
       {"sings", "prays", "laughs", "praises", "follows", "paints", "sing", "pray", "laugh", "praise", "follow", "paint"}},
      {"animals",
       {"dog", "horse", "wolf", "dogs", "horses", "wolves"},
       {"howls", "eats", "runs", "chases", "bites", "smells", "howl", "eat", "run", "chase", "bite", "smell"}},
      {"machines",
       {"clock", "mill", "lathe", "clocks", "mills", "lathes"},
       {"hums", "rusts", "stops", "moves", "cuts", "lifts", "hum", "rust", "stop", "move", "cut", "lift"}},
      {"plants",
       {"rose", "tree", "vine", "roses", "trees", "vines"},
       {"blooms", "withers", "grows", "shades", "hides", "covers", "bloom", "wither", "grow", "shade", "hide", "cover"}}};
  return all;
}

}  // namespace heed
