package compare

import (
	"fmt"
	"strings"
)

// Ceiling is what redis-benchmark reaches on the same server, in the same rounds as the engines: commands
// that nobody computes for. Immutable once built.
type Ceiling struct {
	Point
	Commands Estimate  `json:"commands_per_second"`
	Rounds   []float64 `json:"rounds"` // commands a second
}

// CeilingLines say, one line for each load, what redis-benchmark reaches, and how near the engines come.
func (c *Comparison) CeilingLines() (lines []string) {
	for _, ceiling := range c.Ceilings {
		var shares []string
		for _, engine := range c.Engines() {
			if own := c.roundsOf("commands", engine, ceiling.Point); len(own) > 0 && own[0] > 0 {
				shares = append(shares, fmt.Sprintf("%s %s", engine, EstimateOf(ratios(own, ceiling.Rounds)).Factor()))
			}
		}
		lines = append(lines, fmt.Sprintf("%s: %.0f commands/s (%s) from %s; of these: %s", ceiling.Point.load(),
			ceiling.Commands.Median, ceiling.Commands.Spread(), c.Settings.Ceiling, strings.Join(shares, ", ")))
	}
	return lines
}
