// Package blocking, which follows the engine's needs, has RESP2 clients for ordinary goroutines:
// each call blocks its goroutine until the server has answered. The engines without a loop use
// them, and so do tools and tests.
//
//	Connections ──a free connection per call──▶ Client ──Write──▶ net.Conn ──▶ server
//	                                              │                             │
//	        Replies ◀── Decoder ◀── buffer ◀──────┴──────────Read◀──────────────┘
//
// Encoding, decoding, greeting, pauses, options and errors are package resp's, as for the
// client of the loop. So the two threading models differ in how they wait, not in what they send.
package blocking
