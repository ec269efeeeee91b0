#include "reference/muon.h"

#include <algorithm>
#include <cmath>

#include "reference/narrow.h"

namespace halfstep::reference {
namespace {

/// A matrix of the rows that the last axis makes, in double.
struct Matrix {
  std::size_t rows;
  std::size_t columns;
  std::vector<double> values;

  Matrix(std::size_t r, std::size_t c) : rows(r), columns(c), values(r * c) {}
  explicit Matrix(const Array& array)
      : rows(array.values.size() / array.extent(array.shape.size() - 1)),
        columns(array.extent(array.shape.size() - 1)),
        values(array.values) {}
  double& at(std::size_t i, std::size_t j) { return values[i * columns + j]; }
  double at(std::size_t i, std::size_t j) const { return values[i * columns + j]; }
};

Matrix product(const Matrix& a, const Matrix& b) {
  Matrix c(a.rows, b.columns);
  for (std::size_t i = 0; i < a.rows; ++i) {
    for (std::size_t k = 0; k < a.columns; ++k) {
      for (std::size_t j = 0; j < b.columns; ++j) c.at(i, j) += a.at(i, k) * b.at(k, j);
    }
  }
  return c;
}

Matrix transposed(const Matrix& a) {
  Matrix c(a.columns, a.rows);
  for (std::size_t i = 0; i < a.rows; ++i) {
    for (std::size_t j = 0; j < a.columns; ++j) c.at(j, i) = a.at(i, j);
  }
  return c;
}

double norm(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value * value;
  return std::sqrt(sum);
}

/// Makes the elements (p, q) and (q, p) of a symmetric matrix zero by a rotation of Jacobi.
void rotate(Matrix& a, std::size_t p, std::size_t q) {
  if (a.at(p, q) == 0) return;
  const double theta = (a.at(q, q) - a.at(p, p)) / (2 * a.at(p, q));
  const double t = (theta >= 0 ? 1 : -1) / (std::abs(theta) + std::sqrt(theta * theta + 1));
  const double c = 1 / std::sqrt(t * t + 1);
  const double s = t * c;
  for (std::size_t k = 0; k < a.rows; ++k) {
    const double left = a.at(k, p);
    const double right = a.at(k, q);
    a.at(k, p) = c * left - s * right;
    a.at(k, q) = s * left + c * right;
  }
  for (std::size_t k = 0; k < a.rows; ++k) {
    const double upper = a.at(p, k);
    const double lower = a.at(q, k);
    a.at(p, k) = c * upper - s * lower;
    a.at(q, k) = s * upper + c * lower;
  }
}

}  // namespace

// x <- 3.4445 x - 4.7750 (x x^T) x + 2.0315 (x x^T)^2 x
Array orthogonalised(const Array& u) {
  Matrix x(u);
  const double divisor = norm(x.values) + 1e-7;
  for (double& value : x.values) value /= divisor;
  for (int i = 0; i < 5; ++i) {
    const Matrix gram = product(x, transposed(x));
    const Matrix cubic = product(gram, x);
    const Matrix quintic = product(gram, cubic);
    for (std::size_t j = 0; j < x.values.size(); ++j) {
      x.values[j] = 3.4445 * x.values[j] - 4.7750 * cubic.values[j] + 2.0315 * quintic.values[j];
    }
  }
  return {u.shape, x.values};
}

// The square roots of the eigenvalues of the smaller Gram matrix.
std::vector<double> singular_values(const Array& array) {
  const Matrix x(array);
  Matrix gram = x.rows < x.columns ? product(x, transposed(x)) : product(transposed(x), x);
  for (int sweep = 0; sweep < 30; ++sweep) {
    for (std::size_t p = 0; p < gram.rows; ++p) {
      for (std::size_t q = p + 1; q < gram.rows; ++q) rotate(gram, p, q);
    }
  }
  std::vector<double> result;
  for (std::size_t i = 0; i < gram.rows; ++i) result.push_back(std::sqrt(std::max(0.0, gram.at(i, i))));
  std::ranges::sort(result);
  return result;
}

MuonWeights::MuonWeights(const Muon& muon, const Array& weights, DType moments)
    : muon_(muon), weights_(weights), momentum_(weights.shape), moments_(moments) {}

void MuonWeights::step(const Array& gradient) {
  const auto beta = static_cast<double>(muon_.momentum);
  Array update(gradient.shape);
  for (std::size_t i = 0; i < gradient.values.size(); ++i) {
    const double g = gradient.values[i];
    const double m = beta * momentum_.values[i] + (1 - beta) * g;
    update.values[i] = muon_.nesterov ? beta * m + (1 - beta) * g : m;
    momentum_.values[i] = is_narrow(moments_) ? narrow(moments_).rounded(m) : m;
  }
  const Array direction = orthogonalised(update);
  const Matrix matrix(gradient);
  const double factor = 0.2 * std::sqrt(static_cast<double>(std::max(matrix.rows, matrix.columns)));
  const auto rate = static_cast<double>(muon_.rate.rates[0]);
  for (std::size_t i = 0; i < gradient.values.size(); ++i) {
    double& w = weights_.values[i];
    w -= rate * (factor * direction.values[i] + static_cast<double>(muon_.weight_decay) * w);
  }
}

}  // namespace halfstep::reference
