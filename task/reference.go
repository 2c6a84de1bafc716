package task

// A Reference documents a task for the people who write plans. `rankd tasks`, the pages of docs/reference and the
// reference of plans are made from it and from the rest of the Spec. Its texts are Markdown without headings: whole
// sentences, with parameters and columns in backquotes, and an empty line between paragraphs. Rankd's own tasks fill in
// each field; a program's tasks need none. Immutable once built; any goroutine.
type Reference struct {
	Text       string // the task in full, beyond Doc
	Reads      string // the columns that a node reads; "" for a task without Reads
	Writes     string // the columns that a node writes; "" for a task without Writes
	Redis      string // the commands and round trips of a node; "" for a task without an endpoint
	Order      string // the order of the result's rows, and the order among ties
	Nulls      string // the effect of nulls and of missing columns
	Empty      string // the result for an input without rows, or for a key that does not exist
	Duplicates string // the effect of several rows with the same id
	Failures   string // the errors that fail the node, and the faults that do not
	Example    Example
}

// An Example is a plan that uses the task, with the data that it needs. Immutable once built; any
// goroutine.
type Example struct {
	// Plan is the body of the plan's build function in TypeScript: an expression that begins with ctx, or statements
	// that end with a return. The name redis stands for EP.redis.redis_default.
	Plan string
	// Items is the body of a second plan, items, whose rows the first one reads; "" stands for none.
	Items string
	// Redis lists the commands that fill an empty Redis: words between blanks, in single quotes if they have blanks
	// themselves. Nil stands for the demo data.
	Redis []string
	// Service is the body with which the service behind an endpoint of kind http answers, whatever it is asked; "" stands
	// for an example without a service.
	Service string
	// Request is the request as JSON; "" stands for {"user_id": 1}.
	Request string
}
