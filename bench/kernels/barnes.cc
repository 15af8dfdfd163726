// Stands for: irregular scientific code on a pointer-linked tree. The tree is built by all threads
// under one lock per cell and then read by all without locks; recursion, small structs, divisions.
//
// Barnes-Hut n-body in two dimensions: a quadtree over the bodies, mass and centre computed from
// the leaves up, and for every body a walk that takes a far cell as one point.
#include "kernel.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <mutex>
#include <utility>

namespace {

constexpr double kOpening = 0.5;     // a cell of width w at distance d is one point if w < 0.5 d
constexpr double kSoftening = 1e-3;  // keeps close encounters finite
constexpr double kStep = 1e-4;
constexpr unsigned kSteps = 3;
constexpr unsigned kMaxDepth = 48;

struct Vec {
  double x = 0;
  double y = 0;
};

struct Body {
  Vec position;
  Vec velocity;
  Vec force;
  double mass = 0;
};

struct Cell {
  std::mutex lock;  // guards body and child while the tree grows
  Body* body = nullptr;
  Cell* child[4] = {};
  bool inner = false;
  double mass = 0;
  Vec centre;
};

// Where a cell lies; passed along instead of stored.
struct Square {
  Vec low;
  double width;

  unsigned quadrant(Vec p) const {
    return (p.x >= low.x + width / 2 ? 1u : 0u) + (p.y >= low.y + width / 2 ? 2u : 0u);
  }
  Square part(unsigned quadrant) const {
    const double half = width / 2;
    return {{low.x + (quadrant & 1 ? half : 0), low.y + (quadrant & 2 ? half : 0)}, half};
  }
};

class Universe {
 public:
  Universe(unsigned threads, std::size_t size)
      : threads_(threads), bodies_(size), cells_(8 * size + 1024), barrier_(threads) {
    kernel::Random random(4);
    for (Body& body : bodies_) {
      const double radius = std::sqrt(random.unit());
      const double angle = 6.283185307179586 * random.unit();
      body.position = {radius * std::cos(angle), radius * std::sin(angle)};
      body.mass = 1.0 / static_cast<double>(size);
    }
  }

  void work(unsigned id) {
    const kernel::Share share(bodies_.size(), threads_, id);
    for (unsigned step = 0; step < kSteps; ++step) {
      if (id == 0) plant();
      barrier_.wait();
      for (std::size_t i = share.begin; i < share.end; ++i) insert(&bodies_[i]);
      barrier_.wait();
      if (id == 0) summarise(root_);
      barrier_.wait();
      for (std::size_t i = share.begin; i < share.end; ++i) {
        bodies_[i].force = attraction(root_, space_.width, bodies_[i].position);
      }
      barrier_.wait();
      if (step + 1 == kSteps) break;  // the check compares the forces with these positions
      for (std::size_t i = share.begin; i < share.end; ++i) move(bodies_[i]);
      barrier_.wait();
    }
  }

  // Compares a sample of the forces with the sum over all pairs.
  bool right() const {
    const std::size_t stride = std::max<std::size_t>(bodies_.size() / 50, 1);
    double error = 0;
    double total = 0;
    for (std::size_t i = 0; i < bodies_.size(); i += stride) {
      Vec exact;
      for (const Body& other : bodies_)
        pull(exact, bodies_[i].position, other.position, other.mass);
      error += std::hypot(bodies_[i].force.x - exact.x, bodies_[i].force.y - exact.y);
      total += std::hypot(exact.x, exact.y);
    }
    return std::abs(root_->mass - 1) < 1e-9 && error < 0.02 * total;
  }

 private:
  static void pull(Vec& force, Vec from, Vec to, double mass) {
    const double dx = to.x - from.x;
    const double dy = to.y - from.y;
    const double square = dx * dx + dy * dy + kSoftening * kSoftening;
    const double strength = mass / (square * std::sqrt(square));
    force.x += strength * dx;
    force.y += strength * dy;
  }

  static void move(Body& body) {
    body.velocity.x += kStep * body.force.x;
    body.velocity.y += kStep * body.force.y;
    body.position.x += kStep * body.velocity.x;
    body.position.y += kStep * body.velocity.y;
  }

  Cell* new_cell() {
    const std::size_t index = used_.fetch_add(1, std::memory_order_relaxed);
    if (index >= cells_.size()) std::abort();
    Cell* cell = &cells_[index];
    cell->body = nullptr;
    std::fill(std::begin(cell->child), std::end(cell->child), nullptr);
    cell->inner = false;
    return cell;
  }

  void plant() {
    double reach = 0;
    for (const Body& body : bodies_) {
      reach = std::max({reach, std::abs(body.position.x), std::abs(body.position.y)});
    }
    space_ = {{-reach, -reach}, 2 * reach * (1 + 1e-12)};
    used_.store(0, std::memory_order_relaxed);
    root_ = new_cell();
  }

  // Goes down lock by lock. A leaf that is taken becomes an inner cell, its body moves one down.
  void insert(Body* body) {
    Cell* cell = root_;
    Square square = space_;
    for (unsigned depth = 0; depth < kMaxDepth; ++depth) {
      const unsigned quadrant = square.quadrant(body->position);
      {
        const std::lock_guard guard(cell->lock);
        if (!cell->inner) {
          if (cell->body == nullptr) {
            cell->body = body;
            return;
          }
          Body* resident = std::exchange(cell->body, nullptr);
          Cell* below = new_cell();
          below->body = resident;
          cell->child[square.quadrant(resident->position)] = below;
          cell->inner = true;
        }
        if (cell->child[quadrant] == nullptr) cell->child[quadrant] = new_cell();
        cell = cell->child[quadrant];
      }
      square = square.part(quadrant);
    }
    std::abort();  // two bodies in one place: the positions are no longer numbers
  }

  static void summarise(Cell* cell) {
    cell->mass = 0;
    cell->centre = {};
    const auto add = [cell](double mass, Vec at) {
      cell->mass += mass;
      cell->centre.x += mass * at.x;
      cell->centre.y += mass * at.y;
    };
    if (cell->body != nullptr) add(cell->body->mass, cell->body->position);
    for (Cell* child : cell->child) {
      if (child == nullptr) continue;
      summarise(child);
      add(child->mass, child->centre);
    }
    if (cell->mass > 0) {
      cell->centre.x /= cell->mass;
      cell->centre.y /= cell->mass;
    }
  }

  static Vec attraction(const Cell* cell, double width, Vec at) {
    Vec force;
    const double distance = std::hypot(cell->centre.x - at.x, cell->centre.y - at.y);
    if (!cell->inner || width < kOpening * distance) {
      pull(force, at, cell->centre, cell->mass);
      return force;
    }
    for (const Cell* child : cell->child) {
      if (child == nullptr) continue;
      const Vec part = attraction(child, width / 2, at);
      force.x += part.x;
      force.y += part.y;
    }
    return force;
  }

  unsigned threads_;
  std::vector<Body> bodies_;
  std::vector<Cell> cells_;
  std::atomic<std::size_t> used_{0};
  Cell* root_ = nullptr;
  Square space_{};
  kernel::Barrier barrier_;
};

}  // namespace

int main(int argc, char** argv) {
  const kernel::Options options = kernel::parse(argc, argv, {.full = 12'000, .quick = 200});
  Universe universe(options.threads, options.size);
  kernel::run(options.threads, [&](unsigned id) { universe.work(id); });
  return kernel::verdict("barnes", options, universe.right());
}
