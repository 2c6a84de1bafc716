package reactor

import (
	"context"
	"net"
	"testing"
)

// asIs is a Secure that leaves a connection as it is.
func asIs(_ context.Context, nc net.Conn, _ string) (net.Conn, error) { return nc, nil }

// TestSecureConnectionsKeepTheContract plays the stories of connections with connections that
// gnet does not know.
func TestSecureConnectionsKeepTheContract(t *testing.T) {
	probeSecure = asIs
	defer func() { probeSecure = nil }()
	for name, story := range map[string]func(*testing.T){
		"a refused connect":             TestRefusedConnectFailsLaterAndOnce,
		"writes before that":            TestWritesBeforeARefusedConnectAreDropped,
		"writes before a connect":       TestWritesBeforeTheConnectGoOutInOrder,
		"a close while connecting":      TestCloseWhileConnecting,
		"a timer while connecting":      TestTimerClosesAConnectToAnUnansweringPeer,
		"a connect timeout":             TestConnectTimeout,
		"a slow connect":                TestConnectNeverBlocksTheLoop,
		"a peer that resets":            TestPeerResets,
		"an end behind data":            TestEndOfStreamIsToldOnceAfterTheData,
		"unread bytes":                  TestUnreadDataDoesNotMakeTheLoopSpin,
		"no callback within a call":     TestNoCallbackOfAConnectionFromWithinACall,
		"a close in OnData":             TestCloseFromOnData,
		"a handler that panics":         TestPanicInAHandlerClosesItsConnectionOnly,
		"a stop":                        TestStopClosesConnections,
		"dials that are given up":       TestAbandonedDialsLeaveNothing,
		"connects under way at the end": TestLoopWaitsForConnectsUnderWay,
		"a unix socket":                 TestUnixSocket,
		"its end with the loop":         TestUnixSocketEndsWithTheLoop,
		"names":                         TestNamesAreResolvedAtEachDial,
	} {
		t.Run(name, story)
	}
}
