// C++: templates, virtual calls, operators, a namespace. Argument: number of shapes (default 20000).
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <vector>

#define NOINLINE __attribute__((noinline))

namespace geometry {

template <typename T> struct point {
    T x, y;
    NOINLINE point operator+(const point &other) const { return {x + other.x, y + other.y}; }
};

template <typename T> NOINLINE T distance(const point<T> &a, const point<T> &b)
{
    T dx = a.x - b.x, dy = a.y - b.y;
    return static_cast<T>(std::sqrt(static_cast<double>(dx * dx + dy * dy)));
}

class shape {
public:
    virtual ~shape() = default;
    virtual double area() const = 0;
    virtual double perimeter() const { return 0; }
};

class circle : public shape {
public:
    explicit circle(double r) : radius(r) {}
    NOINLINE double area() const override { return 3.14159265358979 * radius * radius; }
    NOINLINE double perimeter() const override { return 2 * 3.14159265358979 * radius; }

private:
    double radius;
};

class polygon : public shape {
public:
    NOINLINE explicit polygon(int corners)
    {
        for (int i = 0; i < corners; i++)
            points.push_back({std::cos(i * 0.7), std::sin(i * 0.7)});
    }
    NOINLINE double area() const override
    {
        double sum = 0;
        for (std::size_t i = 0; i < points.size(); i++) {
            const auto &p = points[i], &q = points[(i + 1) % points.size()];
            sum += p.x * q.y - q.x * p.y;
        }
        return sum / 2;
    }
    NOINLINE double perimeter() const override
    {
        double sum = 0;
        for (std::size_t i = 0; i < points.size(); i++)
            sum += distance(points[i], points[(i + 1) % points.size()]);
        return sum;
    }

private:
    std::vector<point<double>> points;
};

template <typename Shapes> NOINLINE double total_area(const Shapes &shapes)
{
    double sum = 0;
    for (const auto &s : shapes)
        sum += s->area();
    return sum;
}

} // namespace geometry

int main(int argc, char **argv)
{
    using namespace geometry;
    int n = argc > 1 ? std::atoi(argv[1]) : 20000;
    std::vector<std::unique_ptr<shape>> shapes;
    for (int i = 0; i < n; i++) {
        if (i % 3)
            shapes.push_back(std::make_unique<polygon>(3 + i % 40));
        else
            shapes.push_back(std::make_unique<circle>(i % 17));
    }
    double sum = 0;
    for (int round = 0; round < 20; round++) {
        sum += total_area(shapes);
        for (const auto &s : shapes)
            sum += s->perimeter();
    }
    point<long> p{1, 2}, q{4, 6};
    sum += static_cast<double>(distance(p + q, q));
    std::printf("%.3f\n", sum);
}
