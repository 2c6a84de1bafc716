package rankd

import "time"

var InCallback = inCallback

// Patient has e wait for the outcome of a request however late it comes after the deadline of the context of Rank.
func Patient(e *Engine) { e.lateAnswer = time.Hour }
