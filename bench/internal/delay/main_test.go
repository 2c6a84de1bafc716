package delay

import (
	"testing"

	"github.com/rankd/rankd/internal/testing/looptest"
)

func TestMain(m *testing.M) { looptest.Main(m) }
