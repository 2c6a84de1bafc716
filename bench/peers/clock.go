package peers

import (
	"time"

	"github.com/rankd/rankd/internal/elementary"
)

// seconds returns an instant as the engine's expressions count it: Unix seconds, exact to a microsecond.
func seconds(t time.Time) float64 { return float64(t.UnixMicro()) / 1e6 }

// decay returns what is left of 1 after that many seconds, if half of it is left after each half-life. A score is
// the engine's to the last digit, so it takes the engine's powers of two.
func decay(age, halfLife float64) float64 { return elementary.Exp2(-age / halfLife) }
