package sum

import "testing"

func TestAdd(t *testing.T) {
	if Add(1, 2) != 3 {
		t.Fatal("1 + 2")
	}
}

func TestSign(t *testing.T) {
	t.Run("plus", func(t *testing.T) {
		if Sign(2) != 1 {
			t.Fatal("2")
		}
	})
	t.Run("zero", func(t *testing.T) {
		if Sign(0) != 0 {
			t.Fatal("0")
		}
	})
}

func TestLater(t *testing.T) {
	t.Skip("later")
}
