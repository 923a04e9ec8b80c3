package good

import "example.com/calc/sum"

func Twice(n int) int {
	return sum.Add(n, n)
}
