#include "reference/matmul.h"

namespace halfstep::reference {
namespace {

/// One matrix of a batch, transposed or not.
class Matrix {
 public:
  Matrix(const Array& array, std::size_t batch, bool transposed) : array_(array), transposed_(transposed) {
    const std::size_t rank = array.shape.size();
    height_ = array.extent(rank - 2);
    width_ = array.extent(rank - 1);
    start_ = rank == 2 ? 0 : batch * height_ * width_;
  }

  std::size_t rows() const { return transposed_ ? width_ : height_; }
  std::size_t columns() const { return transposed_ ? height_ : width_; }
  double operator()(std::size_t row, std::size_t column) const {
    return array_.values[start_ + (transposed_ ? column * width_ + row : row * width_ + column)];
  }

 private:
  const Array& array_;
  bool transposed_;
  std::size_t height_;
  std::size_t width_;
  std::size_t start_;
};

double dot(const Matrix& a, std::size_t row, const Matrix& b, std::size_t column) {
  double sum = 0;
  for (std::size_t k = 0; k < a.columns(); ++k) sum += a(row, k) * b(k, column);
  return sum;
}

}  // namespace

Array matmul(const Array& a, const Array& b, const MatmulOptions& options) {
  Shape shape = a.shape.size() > 2 ? a.shape : b.shape;
  const Matrix first_a(a, 0, options.transpose_a);
  const Matrix first_b(b, 0, options.transpose_b);
  shape[shape.size() - 2] = static_cast<std::int64_t>(first_a.rows());
  shape[shape.size() - 1] = static_cast<std::int64_t>(first_b.columns());
  Array result(shape);
  const std::size_t matrix = first_a.rows() * first_b.columns();
  for (std::size_t i = 0; i < result.values.size(); ++i) {
    const std::size_t batch = i / matrix;
    const std::size_t row = i % matrix / first_b.columns();
    result.values[i] =
        dot(Matrix(a, batch, options.transpose_a), row, Matrix(b, batch, options.transpose_b), i % first_b.columns());
  }
  return result;
}

Array linear(const Array& x, const Array& weight, const Array& bias) {
  const std::size_t in = weight.extent(0);
  const std::size_t out = weight.extent(1);
  Shape shape = x.shape;
  shape.back() = weight.shape[1];
  Array result(shape);
  for (std::size_t i = 0; i < result.values.size(); ++i) {
    const std::size_t column = i % out;
    result.values[i] = bias.values[column];
    for (std::size_t k = 0; k < in; ++k) {
      result.values[i] += x.values[i / out * in + k] * weight.values[k * out + column];
    }
  }
  return result;
}

}  // namespace halfstep::reference
