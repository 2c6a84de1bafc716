package httpfront

import (
	"testing"

	"go.uber.org/goleak"
)

// fasthttp starts one goroutine for the header Date, which lives as long as the process.
func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreTopFunction("github.com/valyala/fasthttp.updateServerDate.func1"))
}
