package parquet

import (
	"io"

	pq "github.com/parquet-go/parquet-go"

	"github.com/rpcrdma/toolkit/analyze/fabric"
	"github.com/rpcrdma/toolkit/decode/link"
	"github.com/rpcrdma/toolkit/decode/rdma"
)

// OperationRow is an operation of RDMA as a record of the file. Its columns have the
// names and the meaning of the keys of schema rpcrdma.operation/1; integers are as in
// Row.
type OperationRow struct {
	Time              int64  `parquet:"time,timestamp(nanosecond:utc),delta"`
	TimeNS            int64  `parquet:"time_ns,delta"`
	Connection        int64  `parquet:"connection"`
	Fabric            string `parquet:"fabric,dict"`
	Service           string `parquet:"service,dict"`
	ServiceSource     string `parquet:"service_source,dict"`
	Kind              string `parquet:"kind,dict"`
	Requester         string `parquet:"requester,dict"`
	Responder         string `parquet:"responder,dict"`
	RequesterEndpoint int64  `parquet:"requester_endpoint"`
	ResponderEndpoint int64  `parquet:"responder_endpoint"`
	Sequence          int64  `parquet:"sequence"`
	Status            string `parquet:"status,dict"`
	Length            int64  `parquet:"length"`
	Bytes             int64  `parquet:"bytes"`
	Packets           int64  `parquet:"packets"`
	Again             int64  `parquet:"again"`
	InFlight          int64  `parquet:"in_flight"`
	PSN               *int64 `parquet:"psn,optional"`    // null over iWARP
	Handle            *int64 `parquet:"handle,optional"` // of Writes and Reads
	// Offset is an address in the memory of the responder.
	Offset     *uint64 `parquet:"offset,optional"`
	FirstFrame int64   `parquet:"first_frame"`
	LastFrame  int64   `parquet:"last_frame"`
	EndFrame   *int64  `parquet:"end_frame,optional"`
	Latency    *int64  `parquet:"latency_ns,optional"` // null unless completed
	Lost       LostOp  `parquet:"lost_ns"`             // likewise
}

// LostOp is what the latency of an operation was lost to; the parts sum to it.
type LostOp struct {
	Rest       *int64 `parquet:"rest,optional"`
	NotReady   *int64 `parquet:"receiver_not_ready,optional"`
	Recovery   *int64 `parquet:"recovery,optional"`
	Congestion *int64 `parquet:"congestion,optional"`
	Unknown    *int64 `parquet:"unknown,optional"`
}

// OperationWriter writes one file of operations. It is not safe for concurrent use.
type OperationWriter struct {
	w     *pq.GenericWriter[OperationRow]
	one   [1]OperationRow
	addrs link.AddrTexts
	rows  int
	total uint64
	group int // rows

	psn, handle, end, latency int64
	offset                    uint64
	lost                      [rdma.NumCauses]int64
}

// operationBytes is about how many a row takes, uncompressed.
const operationBytes = 192

// NewOperationWriter makes one. Row groups end after the given number of bytes, uncompressed; 0
// takes GroupBytes.
func NewOperationWriter(w io.Writer, metadata map[string]string, group int) *OperationWriter {
	c := &standard
	if group <= 0 {
		group = GroupBytes
	} else {
		c = &small
	}
	return &OperationWriter{
		w:     pq.NewGenericWriter[OperationRow](w, options(fabric.OperationSchema, metadata, c)...),
		group: min(max(group/operationBytes, 1), maxGroupRows),
	}
}

// Add writes an operation.
func (w *OperationWriter) Add(o *fabric.Operation) error {
	c := o.Connection.Resolve()
	from, to := c.Ends[o.From], c.Ends[o.From.Other()]
	r := &w.one[0]
	*r = OperationRow{
		Time: o.First.Time, TimeNS: o.First.Time, Connection: int64(c.ID), Fabric: c.Fabric.String(),
		Service: o.Service.Name, ServiceSource: o.Service.Source.String(), Kind: o.Kind.String(),
		Requester: w.addrs.Of(from.Addr), Responder: w.addrs.Of(to.Addr), RequesterEndpoint: int64(from.Number()), ResponderEndpoint: int64(to.Number()),
		Sequence: int64(o.Seq), Status: o.Status.String(), Length: int64(o.Length), Bytes: int64(o.Bytes), Packets: int64(o.Packets),
		Again: int64(o.Again), InFlight: int64(o.InFlight), FirstFrame: int64(o.First.Number), LastFrame: int64(o.Last.Number),
	}
	if c.Fabric != rdma.IWARP {
		w.psn = int64(o.PSN)
		r.PSN = &w.psn
	}
	if o.Kind == rdma.WorkWrite || o.Kind == rdma.WorkRead {
		w.handle, w.offset = int64(o.Handle), o.Offset
		r.Handle, r.Offset = &w.handle, &w.offset
	}
	if o.End.Seen() {
		w.end = int64(o.End.Number)
		r.EndFrame = &w.end
	}
	if d, ok := o.Latency(); ok {
		w.latency, w.lost = int64(d), o.Lost
		n := &w.lost
		r.Latency = &w.latency
		r.Lost = LostOp{&n[rdma.CauseRest], &n[rdma.CauseNotReady], &n[rdma.CauseRecovery], &n[rdma.CauseCongestion], &n[rdma.CauseUnknown]}
	}
	if _, err := w.w.Write(w.one[:]); err != nil {
		return err
	}
	w.total++
	if w.rows++; w.rows >= w.group {
		w.rows = 0
		return w.w.Flush()
	}
	return nil
}

// Rows is how many operations have been written.
func (w *OperationWriter) Rows() uint64 { return w.total }

// Close ends the file. It does not close what is below.
func (w *OperationWriter) Close() error { return w.w.Close() }
