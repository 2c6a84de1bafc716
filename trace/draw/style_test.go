package draw

import (
	"math"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestContrast checks the contrast that WCAG 2.2 requires, 4.5 to 1, for each text on its
// background.
func TestContrast(t *testing.T) {
	light, dark, _ := strings.Cut(style, "@media (prefers-color-scheme: dark)")
	for scheme, rules := range map[string]string{"light": light, "dark": dark} {
		colors := make(map[string]float64)
		for _, m := range regexp.MustCompile(`--(\w+): #([0-9a-f]{6});`).FindAllStringSubmatch(rules, -1) {
			colors[m[1]] = luminance(t, m[2])
		}
		for text, grounds := range map[string]string{
			"ink": "bg panel tint", "soft": "bg panel tint", "crit": "bg", "on": "loop inline pool redis engine crit",
		} {
			for ground := range strings.FieldsSeq(grounds) {
				require.Contains(t, colors, text)
				require.Contains(t, colors, ground)
				a, b := colors[text], colors[ground]
				assert.GreaterOrEqual(t, (max(a, b)+0.05)/(min(a, b)+0.05), 4.5, "%s: %s on %s", scheme, text, ground)
			}
		}
	}
}

// luminance returns the relative luminance of a color, as WCAG defines it.
func luminance(t *testing.T, hex string) (sum float64) {
	for i, weight := range []float64{0.2126, 0.7152, 0.0722} {
		v, err := strconv.ParseUint(hex[2*i:2*i+2], 16, 8)
		require.NoError(t, err)
		c := float64(v) / 255
		if c <= 0.04045 {
			c /= 12.92
		} else {
			c = math.Pow((c+0.055)/1.055, 2.4)
		}
		sum += weight * c
	}
	return sum
}
