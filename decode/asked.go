package decode

import "github.com/rpcrdma/toolkit/decode/rdma"

// Asked counts connections that one side asked for and that the capture has no answer to. What RoCE alone has is 0 of those by TCP.
type Asked struct {
	Connections uint64
	V1          uint64 // of these over RoCEv1
	// Of these, those whose peer sends packets of the other version of RoCE only, and those whose peer has another P_Key.
	OtherVersion, OtherPKey uint64
	PKeys                   [2]uint16 // the P_Keys of the first of these
	Requests                uint64    // over TCP, SYNs
	BadICRC                 uint64    // of these with a wrong one
	Longest                 int64     // nanoseconds from the first request for a connection to the last
	First                   uint64    // packet number of the first request
}

// AskedBy is what a connection that is over counts for: one attempt, or none if it was answered, or may have been.
func AskedBy(c *rdma.Connection) (a Asked) {
	if c.Requests == 0 || c.MergedInto != nil || c.State == rdma.Rejected || c.Setup[1].Seen() || c.Sent[0].Sends|c.Sent[1].Sends != 0 {
		return a
	}
	x := Asked{Connections: 1, Requests: uint64(c.Requests), BadICRC: uint64(c.BadRequests), Longest: c.Last.Time - c.First.Time, First: c.First.Number}
	switch c.Fabric {
	case rdma.IWARP:
		if c.Sent[1].Packets == 0 { // of a capture of one direction
			return a
		}
	default:
		if c.State != rdma.Connecting || c.Sent[0].Packets|c.Sent[1].Packets != 0 {
			return a
		}
		if c.Fabric == rdma.RoCEv1 {
			x.V1 = 1
		}
		if c.OtherVersion {
			x.OtherVersion = 1
		}
		if x.PKeys = c.PKeys; x.PKeys != ([2]uint16{}) {
			x.OtherPKey = 1
		}
	}
	return x
}

// Add adds others.
func (a *Asked) Add(o Asked) {
	if a.Connections == 0 || o.Connections > 0 && o.First < a.First {
		a.First = o.First
	}
	if a.OtherPKey == 0 {
		a.PKeys = o.PKeys
	}
	a.Connections += o.Connections
	a.V1 += o.V1
	a.OtherVersion += o.OtherVersion
	a.OtherPKey += o.OtherPKey
	a.Requests += o.Requests
	a.BadICRC += o.BadICRC
	a.Longest = max(a.Longest, o.Longest)
}

// Since takes off what had been counted before. First and Longest stay those of all.
func (a Asked) Since(o Asked) Asked {
	if a.Connections == o.Connections {
		return Asked{}
	}
	a.Connections -= o.Connections
	a.V1 -= o.V1
	a.OtherVersion -= o.OtherVersion
	a.OtherPKey -= o.OtherPKey
	a.Requests -= o.Requests
	a.BadICRC -= o.BadICRC
	return a
}
