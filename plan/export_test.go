package plan

import "time"

// SetNow gives the library another clock.
func (l *Library) SetNow(now func() time.Time) { l.now = now }
