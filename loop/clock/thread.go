package clock

import "time"

// ThreadCPU tells which thread of the system runs the calling goroutine, and how much processor
// time that thread has used. The goroutine may go on in another thread afterwards, so only two
// readings of one thread can be compared. Any goroutine.
type ThreadCPU func() (thread int, used time.Duration)
