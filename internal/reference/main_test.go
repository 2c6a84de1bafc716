package reference

import (
	"flag"
	"testing"

	"github.com/rankd/rankd/compiler"
	"github.com/rankd/rankd/internal/testing/looptest"
)

var update = flag.Bool("update", false, "run the examples anew, and write examples.json and docs/reference")

func TestMain(m *testing.M) {
	compiler.Main()
	looptest.Main(m)
}
