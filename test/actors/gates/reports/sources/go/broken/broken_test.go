package broken

import "testing"

func TestNothing(t *testing.T) {
	var number int = "text"
}
