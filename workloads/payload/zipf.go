package payload

import "math"

// zipf draws ranks by rejection-inversion (Hörmann and Derflinger 1996), which needs no table. Its
// integrals are written so that they hold for every skew above 0, 1 included.
type zipf struct {
	n, skew float64
	// Constants of the method.
	atX1, atN, shift float64
}

func newZipf(n int64, skew float64) zipf {
	z := zipf{n: float64(n), skew: skew}
	z.atX1 = z.integral(1.5) - 1
	z.atN = z.integral(z.n + 0.5)
	z.shift = 2 - z.inverse(z.integral(2.5)-math.Pow(2, -skew))
	return z
}

// draw gives a rank from 0, the most frequent; word is where its random numbers start.
func (z *zipf) draw(word uint64) int64 {
	for {
		u := z.atN + float64(word>>11)/(1<<53)*(z.atX1-z.atN)
		word = mix(word)
		x := z.inverse(u)
		rank := min(max(math.Floor(x+0.5), 1), z.n)
		if rank-x <= z.shift || u >= z.integral(rank+0.5)-math.Pow(rank, -z.skew) {
			return int64(rank) - 1
		}
	}
}

// integral is ∫ x^−s dx from 1, inverse its inverse.
func (z *zipf) integral(x float64) float64 {
	log := math.Log(x)
	return log * expm1Over((1-z.skew)*log)
}

func (z *zipf) inverse(y float64) float64 {
	t := max((1-z.skew)*y, -1) // rounding may lead below
	return math.Exp(y * log1pOver(t))
}

// expm1Over is (eˣ−1)/x, and its limit at 0.
func expm1Over(x float64) float64 {
	if math.Abs(x) < 1e-8 {
		return 1 + x/2
	}
	return math.Expm1(x) / x
}

// log1pOver is ln(1+x)/x, and its limit at 0.
func log1pOver(x float64) float64 {
	if math.Abs(x) < 1e-8 {
		return 1 - x/2
	}
	return math.Log1p(x) / x
}
