package main

import (
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/rpcrdma/toolkit/analyze/account"
	"github.com/rpcrdma/toolkit/analyze/fabric"
	"github.com/rpcrdma/toolkit/analyze/ndjson"
	"github.com/rpcrdma/toolkit/analyze/text"
	"github.com/rpcrdma/toolkit/cmd/internal/cli"
	"github.com/rpcrdma/toolkit/decode"
	"github.com/rpcrdma/toolkit/decode/link"
	"github.com/rpcrdma/toolkit/decode/rdma"
	"github.com/rpcrdma/toolkit/decode/transaction"
	"github.com/rpcrdma/toolkit/internal/printable"
	"github.com/rpcrdma/toolkit/internal/table"
)

const connectionsLong = `List the connections of a capture, two lines for each: the client with what it
sent, then the server. The client is the side that sends forward calls.

  SERVICE  the layer above, by connection management or port
  PEER     address, and queue pair or port
  SETUP    what the side said when the connection was made: REQ or REP (RoCE,
           InfiniBand), MPA (iWARP); - if that was not captured
  DEPTH    RDMA Reads that the side answers at once / starts at once
  INLINE   bytes that the side sends / receives in a Send, from its private
           data (RFC 8797); i if it supports remote invalidation
  MTU      path MTU in bytes
  PACKETS, BYTES, SENDS, READS, WRITES: what the side sent; reads are requests
  AGAIN    retransmitted or duplicate packets; NAK: with RNR after the slash
  ECN      packets marked "congestion experienced"; CNP: congestion notifications
  GAPS     packets (RoCE) or bytes (TCP) missing from the capture
  CRC      packets with a wrong ICRC, or FPDUs with a wrong CRC32C

Below the table, a line for each connection shows when it was seen and how it ended.`

// connectionsOptions are the flags of the command connections.
type connectionsOptions struct {
	inputOptions
	format  string
	verbose bool
}

func newConnectionsCommand(s *cli.Streams) *cobra.Command {
	o := &connectionsOptions{}
	cmd := &cobra.Command{
		Use:   "connections [flags] FILE...",
		Short: "List connections: their setup, traffic and end",
		Long:  connectionsLong,
		Example: `  rpcrdma-dump connections trace.pcap
  rpcrdma-dump connections -v trace.pcap
  rpcrdma-dump connections -T ndjson trace.pcap | jq .connection_key`,
		RunE: func(cmd *cobra.Command, args []string) error { return o.run(cmd, s, args) },
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.StringVarP(&o.format, "format", "T", "text", "output `format`: text, ndjson or json")
	f.BoolVarP(&o.verbose, "verbose", "v", false, "show everything that is known")
	o.inputOptions.flags(f)
	o.trackersFlag(f)
	_ = cmd.RegisterFlagCompletionFunc("format", cobra.FixedCompletions([]string{"text", "ndjson", "json"}, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

// connection is a connection at its end.
type connection struct {
	*rdma.Connection
	client rdma.Side // the side that sends forward calls; if there were none, the one that was seen first
	calls  transaction.Calls
}

func (o *connectionsOptions) run(cmd *cobra.Command, s *cli.Streams, args []string) error {
	if o.format != "text" && o.format != "ndjson" && o.format != "json" {
		return cli.Usagef("-T is text, ndjson or json, not %q", o.format)
	}
	if err := o.checkTrackers(); err != nil {
		return err
	}
	j, err := start(cmd, s, &o.inputOptions, args)
	if err != nil {
		return err
	}
	list := &connectionList{limit: listedBytes}
	defer list.close()
	opt := o.decoder()
	list.limit = min(list.limit, opt.Memory/2)
	opt.Transactions.OnCompletion = true // only the counts of connections matter
	opt.Closed = func(c *rdma.Connection) {
		if c.MergedInto == nil {
			client, _ := transaction.ClientOf(c)
			list.add(&connection{c, client, transaction.CallsOf(c)})
		}
	}
	opt.Group = func(int) func(*transaction.Transaction) bool {
		return func(*transaction.Transaction) bool { return true }
	}
	j.d = decode.New(opt, func(*transaction.Transaction) {})
	j.noteTrackers(o.trackers)
	_, errTTY := cli.Terminal(s.Err)
	err = j.run(errTTY)
	out := newOutput(s.Out, false, false)
	var listErr error
	switch {
	case o.format != "text":
		a := j.d.Account()
		listErr = printJSON(out, list, &a, o.format == "json")
	case o.verbose:
		listErr = list.each(func(c *connection) { c.detail(out) })
	default:
		listErr = printConnections(out, list)
	}
	if list.lost > 0 {
		j.notes.Printf("%d connections are not listed", list.lost)
	}
	if e := errors.Join(list.err, listErr); e != nil && err == nil {
		err = fmt.Errorf("the list of connections is longer than memory holds, and a temporary file (see TMPDIR) fails: %w", e)
	}
	return j.finish(err, out.close())
}

// printConnections goes through the list three times: for the widths of the
// columns, for the table, and for the lines below it.
func printConnections(w io.Writer, list *connectionList) error {
	rows := table.NewStream(connectionHeader, connectionRight)
	n := 0
	err := list.each(func(c *connection) {
		n++
		for _, row := range c.rows() {
			rows.Measure(row)
		}
	})
	if n == 0 || err != nil {
		return err
	}
	rows.Print(w, connectionHeader)
	if err := list.each(func(c *connection) {
		for _, row := range c.rows() {
			rows.Print(w, row)
		}
	}); err != nil {
		return err
	}
	fmt.Fprintln(w)
	return list.each(func(c *connection) { fmt.Fprintf(w, "%d: %s\n", c.ID, c.life()) })
}

type setup rdma.Setup

var connectionHeader = []string{
	"ID", "FABRIC", "SERVICE", "PEER", "", "SETUP", "DEPTH", "INLINE", "MTU",
	"PACKETS", "BYTES", "SENDS", "READS", "WRITES", "AGAIN", "NAK", "ECN", "CNP", "GAPS", "CRC",
}

var connectionRight = []bool{
	true, false, false, false, false, false, true, false, true,
	true, true, true, true, true, true, true, true, true, true, true,
}

// rows are the two lines of a connection in the table.
func (c connection) rows() (rows [2][]string) {
	for i, side := range c.order() {
		n, s := &c.Sent[side], &c.Setup[side]
		row := []string{"", "", "", link.AddrString(c.Ends[side].Addr), endpoint(c.Ends[side]), c.setupName(side), "-", "-", ""}
		if s.Seen {
			row[6] = fmt.Sprintf("%d/%d", s.ResponderDepth, s.InitiatorDepth)
			row[7] = (*setup)(s).inline()
		}
		if i == 0 {
			row[0], row[1], row[2], row[8] = fmt.Sprint(c.ID), c.Fabric.String(), c.service(), table.Number(uint64(c.MTU))
		}
		nak := table.Number(n.NAKs)
		if n.RNRs > 0 {
			nak = fmt.Sprintf("%d/%d", n.NAKs, n.RNRs)
		}
		rows[i] = append(row,
			fmt.Sprint(n.Packets), string(text.Size(nil, n.Bytes)), table.Number(n.Sends), table.Number(n.Reads), table.Number(n.Writes),
			table.Number(n.Retransmitted), nak, table.Number(n.ECN), table.Number(n.CNPs), table.Number(n.Gaps), table.Number(n.BadCRC))
	}
	return rows
}

func (s *setup) inline() string {
	p := &s.Private
	if !p.Present {
		return "-"
	}
	out := fmt.Sprintf("%d/%d", p.SendSize, p.ReceiveSize)
	if p.RemoteInvalidate {
		out += " i"
	}
	return out
}

// detail writes all that is known of a connection.
func (c connection) detail(w io.Writer) {
	name := c.Fabric.String()
	if s := c.service(); s != "-" {
		name += ", " + s
	}
	fmt.Fprintf(w, "Connection %d: %s\n  %s\n", c.ID, name, c.life())
	if c.MTU > 0 {
		fmt.Fprintf(w, "  path MTU %d bytes\n", c.MTU)
	}
	order := c.order()
	if a, b := &c.Setup[order[0]], &c.Setup[order[1]]; a.Seen && b.Seen && isRDMA(c.Fabric) {
		fmt.Fprintf(w, "  inline threshold %d bytes client to server, %d bytes server to client\n",
			rdma.InlineThreshold(&a.Private, &b.Private), rdma.InlineThreshold(&b.Private, &a.Private))
	}
	for i, side := range order {
		role := [2]string{"client", "server"}[i]
		s, n := &c.Setup[side], &c.Sent[side]
		fmt.Fprintf(w, "  %s %s %s\n", role, link.AddrString(c.Ends[side].Addr), endpoint(c.Ends[side]))
		if s.Seen {
			c.setupDetail(w, side)
		} else if isRDMA(c.Fabric) {
			fmt.Fprintf(w, "    setup not captured\n")
		}
		if !isRDMA(c.Fabric) {
			fmt.Fprintf(w, "    sent %d packets, %d bytes, %d messages; %d packets seen again, %d bytes missing\n",
				n.Packets, n.Bytes, n.Sends, n.Retransmitted, n.Gaps)
			continue
		}
		fmt.Fprintf(w, "    sent %d packets, %d bytes: %d Sends, %d RDMA Reads, %d RDMA Writes (%d bytes), %d bytes of Read Responses, %d ACKs",
			n.Packets, n.Bytes, n.Sends, n.Reads, n.Writes, n.WriteBytes, n.ReadBytes, n.Acks)
		if n.Atomics > 0 {
			fmt.Fprintf(w, ", %d atomics", n.Atomics)
		}
		fmt.Fprintf(w, "\n    health: %d packets seen again, %d NAKs, %d RNR NAKs, %d missing, %d with wrong CRC, %d congestion marks, %d CNPs\n",
			n.Retransmitted, n.NAKs, n.RNRs, n.Gaps, n.BadCRC, n.ECN, n.CNPs)
		if n.Resyncs > 0 {
			fmt.Fprintf(w, "    packet sequence numbers contradicted what was known, and tracking restarted: %d times\n", n.Resyncs)
		}
	}
	fmt.Fprintln(w)
}

func endpoint(e rdma.End) string {
	switch {
	case e.QPN != 0:
		return fmt.Sprintf("QP 0x%02x", e.QPN)
	case e.Port != 0:
		return fmt.Sprintf("port %d", e.Port)
	}
	return "QP unknown"
}

// life tells when a connection was seen and how it ended.
func (c connection) life() string {
	d := time.Duration(c.Last.Time - c.First.Time)
	s := fmt.Sprintf("%s to %s (%s), frames %d-%d, %d transactions", clock(c.First.Time), clock(c.Last.Time),
		text.Duration(nil, d), c.First.Number, c.Last.Number, c.calls.Ended)
	if n := c.calls.Unanswered; n > 0 {
		s += fmt.Sprintf(", %d without reply", n)
	}
	if n := c.calls.Incomplete; n > 0 {
		s += fmt.Sprintf(", %d incomplete", n)
	}
	if c.Tunnel != nil {
		s += "; in " + string(text.Tunnel(nil, c.Tunnel, c.order()[0]))
	}
	return s + "; " + c.ending()
}

func (c connection) ending() string {
	switch {
	case c.Terminated != "":
		return c.Terminated
	case c.State != rdma.Closed:
		return "open: " + c.State.String()
	}
	return "open at the end of the capture"
}

func clock(ns int64) string { return time.Unix(0, ns).UTC().Format("15:04:05.000000") }

func isRDMA(f rdma.Fabric) bool { return f != rdma.TCP && f != rdma.UDP }

func (c connection) setupDetail(w io.Writer, side rdma.Side) {
	s := &c.Setup[side]
	fmt.Fprintf(w, "    %s in frame %d: answers %d RDMA Reads at once, starts %d", c.setupName(side), s.Frame.Number, s.ResponderDepth, s.InitiatorDepth)
	if c.Fabric == rdma.IWARP {
		fmt.Fprintf(w, ", revision %d", s.MPARevision)
		for _, x := range []struct {
			on   bool
			name string
		}{{s.Markers, "markers"}, {s.CRC, "CRC"}, {s.PeerToPeer, "peer-to-peer"}} {
			if x.on {
				fmt.Fprintf(w, ", %s", x.name)
			}
		}
	} else {
		fmt.Fprintf(w, ", first PSN %d, RNR retries %d", s.StartPSN, s.RNRRetryCount)
		if s.PathMTU > 0 {
			fmt.Fprintf(w, ", retries %d, ACK timeout %s, service 0x%016x", s.RetryCount, ackTimeout(s.AckTimeout), s.ServiceID)
		}
	}
	fmt.Fprintln(w)
	if p := &s.Private; p.Present {
		fmt.Fprintf(w, "    RFC 8797: sends %d bytes inline, receives %d", p.SendSize, p.ReceiveSize)
		if p.RemoteInvalidate {
			fmt.Fprint(w, ", supports remote invalidation")
		}
		fmt.Fprintln(w)
	} else if s.PrivateBytesLen > 0 {
		fmt.Fprintf(w, "    private data %x\n", s.PrivateBytes[:min(int(s.PrivateBytesLen), len(s.PrivateBytes))])
	}
}

// ackTimeout formats the time that the timeout exponent of a REQ stands for: 4.096 µs·2^e, and no timeout for
// 0 (IBTA volume 1, section 9.7.6.1.3).
func ackTimeout(exponent uint8) string {
	if exponent == 0 {
		return "none"
	}
	return string(text.Duration(nil, 4096*time.Nanosecond<<(exponent&31)))
}

// connectionSchema is the value of the key "schema" of a connection.
const connectionSchema = "rpcrdma.connection/1"

func printJSON(w io.Writer, list *connectionList, a *decode.Account, array bool) error {
	var e ndjson.Encoder
	var b []byte
	if array {
		b = append(b, '[')
	}
	first := true
	err := list.each(func(c *connection) {
		if array {
			if !first {
				b = append(b, ',')
			}
			first = false
			b = append(b, '\n')
		}
		b = c.append(b, &e)
		if !array {
			b = append(b, '\n')
		}
		_, _ = w.Write(b)
		b = b[:0]
	})
	if array {
		if !first {
			b = append(b, ',')
		}
		b = append(b, '\n')
	}
	b = printable.AppendValue(b, account.New(a))
	if array {
		b = append(b, "]\n"...)
	}
	_, _ = w.Write(b)
	return err
}

// order is the client's side, then the server's.
func (c connection) order() [2]rdma.Side { return [2]rdma.Side{c.client, c.client.Other()} }

func (c connection) setupName(side rdma.Side) string {
	s := &c.Setup[side]
	switch {
	case !s.Seen:
		return "-"
	case c.Fabric == rdma.IWARP:
		return "MPA"
	case s.ServiceID != 0 || s.PathMTU != 0:
		return "REQ"
	}
	return "REP"
}

// append appends a connection as a JSON object.
func (c connection) append(b []byte, e *ndjson.Encoder) []byte {
	b = fmt.Appendf(b, `{"schema":"%s","connection":%d,"connection_key":"`, connectionSchema, c.ID)
	b = e.Key(b, c.Connection)
	b = fmt.Appendf(b, `","fabric":"%s","first_time":"`, c.Fabric)
	b = e.Time(b, c.First.Time)
	b = append(b, `","last_time":"`...)
	b = e.Time(b, c.Last.Time)
	b = fmt.Appendf(b, `","first_frame":%d,"last_frame":%d,"mtu":%d,"transactions":%d,"no_reply":%d,"incomplete":%d,"state":"%s","end":`,
		c.First.Number, c.Last.Number, c.MTU, c.calls.Ended, c.calls.Unanswered, c.calls.Incomplete, c.state())
	b = ndjson.Quote(b, c.Terminated)
	s := fabric.NameService(c.Connection, nil)
	b = fmt.Appendf(b, `,"service":"%s","service_source":"%s"`, s.Name, s.Source)
	if c.Tunnel != nil {
		b = append(b, `,"tunnel":`...)
		b = e.Tunnel(b, c.Tunnel, c.order()[0])
	}
	for i, side := range c.order() {
		b = fmt.Appendf(b, `,"%s":`, [2]string{"client", "server"}[i])
		b = c.appendSide(b, side)
	}
	return append(b, '}')
}

func (c connection) state() string {
	if c.Terminated == "" && c.State == rdma.Closed {
		return "open"
	}
	return c.State.String()
}

func (c connection) appendSide(b []byte, side rdma.Side) []byte {
	end, s, n := c.Ends[side], &c.Setup[side], &c.Sent[side]
	port := end.QPN
	if port == 0 {
		port = uint32(end.Port)
	}
	b = append(b, `{"address":`...)
	b = ndjson.Quote(b, link.AddrString(end.Addr))
	b = fmt.Appendf(b, `,"endpoint":%d,"setup":`, port)
	if !s.Seen {
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
	return append(b, '}')
}

// service names the layer above, "-" if it is not known.
func (c connection) service() string {
	if s := fabric.NameService(c.Connection, nil); s.Source != fabric.SourceNone {
		return s.String()
	}
	return "-"
}
