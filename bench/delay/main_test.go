package delay

import (
	"testing"

	"github.com/rankd/rankd/loop/looptest"
)

func TestMain(m *testing.M) { looptest.Main(m) }
