package scheduler

// Helpers of this package's tests, for the external tests of all three engines.
var (
	Node              = node
	Source            = source
	SleepNode         = sleepNode
	BusyNode          = busyNode
	ConcatNode        = concatNode
	VMNode            = vmNode
	ViewerNode        = viewerNode
	Graph             = graph
	GraphFor          = graphFor
	Builtins          = builtins
	TestRegistry      = testRegistry
	SilentRedis       = silentRedis
	LoopTask          = loopTask
	RequireRows       = requireRows
	RequireNode       = requireNode
	AssertNothingLeft = assertNothingLeft
	IDsUpTo           = idsUpTo
	MS                = ms
	PlanJSON          = planJSON
	NoRows            = noRows
)

const (
	Ample = ample
	Soon  = soon

	FinalScore = finalScore
)
