package sum

func Add(a, b int) int {
	return a + b
}

func Sign(n int) int {
	if n < 0 {
		return -1
	}
	return 1
}
