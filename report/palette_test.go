package report

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// The page and the pictures beside it have the same colours.
func TestPaletteIsOne(t *testing.T) {
	seen := map[string]bool{}
	for name, hues := range map[string][]hue{"hue": palette, "shade": shades[:]} {
		for i, h := range hues {
			require.Equal(t, h.light, fmt.Sprintf("#%02x%02x%02x", h.rgba.R, h.rgba.G, h.rgba.B), "%s %d", name, i)
			require.EqualValues(t, 0xff, h.rgba.A)
			require.False(t, seen[h.light], "%s %d is there twice", name, i)
			seen[h.light] = true
		}
	}
}
