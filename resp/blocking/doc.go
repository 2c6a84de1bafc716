// Package blocking, which is not covered by the compatibility promise, has a RESP2 client for ordinary
// goroutines: each call blocks its goroutine until the server has answered. The engines without a loop use
// it, and so do tools and tests.
//
//	Client ──a free connection per call──▶ conn ──Write──▶ net.Conn ──▶ server
//	                                        │                            │
//	  Replies ◀── Decoder ◀── ReplyBuffer ◀─┴──────────Read◀─────────────┘
//
// A Cluster, the client of a Redis Cluster, hosts a loop of its own with a clusterclient.Client on it:
//
//	Exchange ──Post──▶ loop ──▶ clusterclient.Client ──▶ masters
//	    ▲                               │
//	    └── copies of the replies ◀─────┘
//
// Encoding, decoding, greeting, pauses, options and errors are package resp's, as for the
// client of the loop. So the two threading models differ in how they wait, not in what they send.
//
// docs/glossary.md explains the words that this package shares with others.
package blocking
