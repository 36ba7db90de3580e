package connections

import (
	"fmt"
	"io"

	"github.com/rpcrdma/toolkit/analyze/account"
	"github.com/rpcrdma/toolkit/analyze/fabric"
	"github.com/rpcrdma/toolkit/analyze/ndjson"
	"github.com/rpcrdma/toolkit/decode/link"
	"github.com/rpcrdma/toolkit/decode/rdma"
	"github.com/rpcrdma/toolkit/internal/printable"
)

// Schema is the value of the key "schema" of a connection.
const Schema = "rpcrdma.connection/1"

// About is what JSON has besides the list; each may be nil.
type About struct {
	First   any              // an object before the list
	Account *account.Account // an object after it
}

// JSON writes the list as lines of JSON, or as one array.
func JSON(w io.Writer, list *List, about About, array bool) error {
	var e ndjson.Encoder
	before, after := "", "\n"
	if array {
		before, after = "[\n", ""
	}
	var b []byte
	object := func(add func([]byte) []byte) {
		b = add(append(b[:0], before...))
		if n := len(b); n > 0 && b[n-1] == '\n' {
			b = b[:n-1]
		}
		b = append(b, after...)
		if array {
			before = ",\n"
		}
		_, _ = w.Write(b)
	}
	if about.First != nil {
		object(func(b []byte) []byte { return printable.AppendValue(b, about.First) })
	}
	err := list.Each(func(c *Connection) {
		object(func(b []byte) []byte { return c.append(b, &e) })
	})
	if about.Account != nil {
		object(func(b []byte) []byte { return printable.AppendValue(b, about.Account) })
	}
	switch {
	case array && before == "[\n":
		_, _ = io.WriteString(w, "[]\n")
	case array:
		_, _ = io.WriteString(w, "\n]\n")
	}
	return err
}

// append appends a connection as a JSON object.
func (c *Connection) append(b []byte, e *ndjson.Encoder) []byte {
	b = fmt.Appendf(b, `{"schema":"%s","connection":%d,"connection_key":"`, Schema, c.ID)
	b = e.Key(b, c.Connection)
	b = fmt.Appendf(b, `","fabric":"%s","first_time":"`, c.Fabric)
	b = e.Time(b, c.First.Time)
	b = append(b, `","last_time":"`...)
	b = e.Time(b, c.Last.Time)
	b = fmt.Appendf(b, `","first_frame":%d,"last_frame":%d,"mtu":%d,"transactions":%d,"no_reply":%d,"incomplete":%d,"state":"%s","end":`,
		c.First.Number, c.Last.Number, c.MTU, c.Calls.Ended, c.Calls.Unanswered, c.Calls.Incomplete, c.state())
	b = ndjson.Quote(b, c.Terminated)
	if c.Malformed > 0 {
		b = fmt.Appendf(b, `,"malformed_headers":%d`, c.Malformed)
	}
	s := fabric.NameService(c.Connection, c.Client.Other(), nil)
	b = fmt.Appendf(b, `,"service":"%s","service_source":"%s"`, s.Name, s.Source)
	b = c.Policies.append(b)
	if c.Tunnel != nil {
		b = append(b, `,"tunnel":`...)
		b = e.Tunnel(b, c.Tunnel, c.order()[0])
	}
	if c.Taps > 0 {
		b = append(b, `,"tap":`...)
		b = ndjson.Quote(b, c.Tap)
		b = fmt.Appendf(b, `,"taps":%d`, c.Taps)
		if c.Capture != "" {
			b = append(b, `,"capture":`...)
			b = ndjson.Quote(b, c.Capture)
			b = fmt.Appendf(b, `,"capture_frame":%d`, c.Packet)
		}
	}
	for i, side := range c.order() {
		b = fmt.Appendf(b, `,"%s":`, [2]string{"client", "server"}[i])
		b = c.appendSide(b, side)
	}
	return append(b, '}')
}

func (c *Connection) appendSide(b []byte, side rdma.Side) []byte {
	end, s, n := c.Ends[side], &c.Setup[side], &c.Sent[side]
	port := end.QPN
	if port == 0 {
		port = uint32(end.Port)
	}
	b = append(b, `{"address":`...)
	b = ndjson.Quote(b, link.AddrString(end.Addr))
	b = fmt.Appendf(b, `,"endpoint":%d,"setup":`, port)
	if !s.Terms() {
		b = append(b, `null`...)
	} else {
		b = fmt.Appendf(b, `{"message":"%s","frame":%d,"responder_depth":%d,"initiator_depth":%d,"private_data":"%x"`,
			c.setupName(side), s.Frame.Number, s.ResponderDepth, s.InitiatorDepth,
			s.PrivateBytes[:min(int(s.PrivateBytesLen), len(s.PrivateBytes))])
		if c.Fabric == rdma.IWARP {
			b = fmt.Appendf(b, `,"mpa_revision":%d,"markers":%t,"crc":%t,"peer_to_peer":%t`, s.MPARevision, s.Markers, s.CRC, s.PeerToPeer)
		} else {
			b = fmt.Appendf(b, `,"start_psn":%d,"path_mtu":%d,"retry_count":%d,"rnr_retry_count":%d,"ack_timeout":%d,"service_id":%d`,
				s.StartPSN, s.PathMTU, s.RetryCount, s.RNRRetryCount, s.AckTimeout, s.ServiceID)
		}
		if p := &s.Private; p.Present {
			b = fmt.Appendf(b, `,"rpcrdma":{"version":%d,"remote_invalidate":%t,"send_size":%d,"receive_size":%d}`,
				p.Version, p.RemoteInvalidate, p.SendSize, p.ReceiveSize)
		} else {
			b = append(b, `,"rpcrdma":null`...)
		}
		b = append(b, '}')
	}
	b = fmt.Appendf(b, `,"packets":%d,"bytes":%d,"sends":%d,"reads":%d,"writes":%d,"atomics":%d,"read_response_bytes":%d,"write_bytes":%d,"acks":%d,`+
		`"retransmits":%d,"naks":%d,"rnr_naks":%d,"gaps":%d,"bad_crc":%d,"ecn_marked":%d,"cnps":%d`,
		n.Packets, n.Bytes, n.Sends, n.Reads, n.Writes, n.Atomics, n.ReadBytes, n.WriteBytes, n.Acks,
		n.Retransmitted, n.NAKs, n.RNRs, n.Gaps, n.BadCRC, n.ECN, n.CNPs)
	if n.Resyncs > 0 {
		b = fmt.Appendf(b, `,"resyncs":%d`, n.Resyncs)
	}
	if n.FalseEnds > 0 {
		b = fmt.Appendf(b, `,"false_ends":%d`, n.FalseEnds)
	}
	if h := &c.Headers[side]; h.seen() {
		b = append(b, `,"headers":`...)
		b = h.append(b)
	}
	return append(c.appendStack(b, side), '}')
}
