package parquet

// Row is a transaction as a record of the file. Its columns have the names and the meaning of the keys of
// schema rpcrdma.transaction/1; docs/parquet.md lists the few differences.
//
// Integers are INT64 whatever the width on the wire, since several engines have no unsigned types. Only
// offsets and counts of files, which use all 64 bits, are UINT_64.
type Row struct {
	Time int64 `parquet:"time,timestamp(nanosecond:utc),delta"`
	// TimeNS is the same in nanoseconds since 1970, for engines that round
	// timestamps.
	TimeNS         int64  `parquet:"time_ns,delta"`
	XID            int64  `parquet:"xid"`
	Connection     int64  `parquet:"connection"`
	ConnectionKey  string `parquet:"connection_key,dict"`
	Fabric         string `parquet:"fabric,dict"`
	Client         string `parquet:"client,dict"`
	Server         string `parquet:"server,dict"`
	ClientEndpoint int64  `parquet:"client_endpoint"`
	ServerEndpoint int64  `parquet:"server_endpoint"`
	Direction      string `parquet:"direction,dict"`
	Tunnel         Tunnel `parquet:"tunnel"`

	Program   string `parquet:"program,dict"`
	Version   int64  `parquet:"version"`
	Procedure string `parquet:"procedure,dict"`
	// Operation is what the listing shows, OperationGroup what reports group by.
	Operation      string      `parquet:"operation,dict"`
	OperationGroup string      `parquet:"operation_group,dict"`
	MinorVersion   *int64      `parquet:"minor_version,optional"`
	Operations     []Operation `parquet:"operations,list"`
	Status         string      `parquet:"status,dict"`
	GSS            string      `parquet:"gss,optional,dict"` // null if empty
	// GSSOpened is what became of the wrapped bodies, GSSPrincipal the caller; null if empty.
	GSSOpened    string `parquet:"gss_opened,optional,dict"`
	GSSPrincipal string `parquet:"gss_principal,optional,dict"`

	CallFrame        *int64 `parquet:"call_frame,optional"`
	ReplyFrame       *int64 `parquet:"reply_frame,optional"`
	CallType         string `parquet:"call_type,dict"`
	ReplyType        string `parquet:"reply_type,dict"`
	CreditsRequested int64  `parquet:"credits_requested"`
	CreditsGranted   int64  `parquet:"credits_granted"`

	ReadChunks        []ReadChunk `parquet:"read_chunks,list"`
	WriteChunks       [][]Segment `parquet:"write_chunks,list"`
	ReplyChunk        []Segment   `parquet:"reply_chunk,optional,list"`
	WrittenChunks     [][]Segment `parquet:"written_chunks,list"`
	WrittenReplyChunk []Segment   `parquet:"written_reply_chunk,optional,list"`
	ReplyReadChunks   []ReadChunk `parquet:"reply_read_chunks,list"`

	Reads             int64  `parquet:"rdma_reads"`
	ReadBytes         int64  `parquet:"rdma_read_bytes"`
	Writes            int64  `parquet:"rdma_writes"`
	WriteBytes        int64  `parquet:"rdma_write_bytes"`
	CallBytes         int64  `parquet:"call_bytes"`
	ReplyBytes        int64  `parquet:"reply_bytes"`
	Retransmits       int64  `parquet:"retransmits"`
	InvalidatedHandle *int64 `parquet:"invalidated_handle,optional"`

	Latency Latency `parquet:"latency_ns"`
	Lost    Lost    `parquet:"lost_ns"`
	// Path is the part of the latency when packets were on their way. DataDone is when the requester had read the result after the
	// reply, FirstSent when the call was sent on a connection before, AppLatency from the first sending until the requester had all. They are null where
	// there is nothing of this, or it is not known.
	Path       *int64 `parquet:"path,optional"`
	DataDone   int64  `parquet:"data_done,optional,timestamp(nanosecond:utc),delta"`
	FirstSent  int64  `parquet:"first_sent,optional,timestamp(nanosecond:utc),delta"`
	AppLatency *int64 `parquet:"app_latency,optional"`
	// CreditWait is how long all credits were in use before the call.
	CreditWait int64 `parquet:"credit_wait_ns"`
	// SlotWait is how long all slots of the session were in use before the call.
	SlotWait int64  `parquet:"slot_wait_ns"`
	State    string `parquet:"state,dict"`

	CallDelivery  string `parquet:"call_delivery,dict"`
	ReplyDelivery string `parquet:"reply_delivery,dict"`

	Notes []string `parquet:"notes,list" parquet-element:",dict"`
	// NoteCodes are the codes of Notes, in the same order.
	NoteCodes []string `parquet:"note_codes,list" parquet-element:",dict"`
	File      File     `parquet:"file"`
}

// Tunnel is the outermost wrapping of the connection's packets. All of it is null if they had none.
type Tunnel struct {
	Type        string `parquet:"type,optional,dict"`
	Version     *int64 `parquet:"version,optional"`
	ID          *int64 `parquet:"id,optional"`
	OuterClient string `parquet:"outer_client,optional,dict"`
	OuterServer string `parquet:"outer_server,optional,dict"`
}

// Operation is one of a COMPOUND.
type Operation struct {
	Op     string `parquet:"op,dict"`
	Status string `parquet:"status,optional,dict"` // null if the reply does not have it
}

// ReadChunk is the Read segments of one position.
type ReadChunk struct {
	Position int64     `parquet:"position"`
	Segments []Segment `parquet:"segments,list"`
}

// Segment is a piece of memory that one side offers.
type Segment struct {
	Handle int64  `parquet:"handle"`
	Length int64  `parquet:"length"`
	Offset uint64 `parquet:"offset"`
}

// Latency holds the phases in nanoseconds. All are null unless call and reply
// were captured, and all but Total and Ack if the time is not divided (transaction.Phases.Divided).
type Latency struct {
	CallTransfer  *int64 `parquet:"call_transfer,optional"`
	ArgumentPull  *int64 `parquet:"argument_pull,optional"`
	PullWait      *int64 `parquet:"pull_wait,optional"`
	Server        *int64 `parquet:"server,optional"`
	ResultPush    *int64 `parquet:"result_push,optional"`
	ReplyTransfer *int64 `parquet:"reply_transfer,optional"`
	Total         *int64 `parquet:"total,optional"`
	Ack           *int64 `parquet:"ack,optional"`
}

// Lost is what the time was lost to, in nanoseconds. All are null where nobody knows.
type Lost struct {
	NotReady   *int64 `parquet:"receiver_not_ready,optional"`
	Recovery   *int64 `parquet:"recovery,optional"`
	Congestion *int64 `parquet:"congestion,optional"`
	ReadSlot   *int64 `parquet:"read_slot,optional"`
	Unknown    *int64 `parquet:"unknown,optional"`
	Total      *int64 `parquet:"total,optional"`
}

// File is what the transaction is about. All of it is null if it is about no
// file.
type File struct {
	Handle    *string `parquet:"filehandle,optional,dict"`
	Name      *string `parquet:"name,optional,dict"`
	Path      *string `parquet:"path,optional,dict"`
	To        *string `parquet:"to,optional,dict"`
	NewHandle *string `parquet:"new_filehandle,optional,dict"`
	Offset    *uint64 `parquet:"offset,optional"`
	Count     *uint64 `parquet:"count,optional"`
	Moved     *int64  `parquet:"moved,optional"`
	Stable    string  `parquet:"stable,optional,dict"`
	EOF       *bool   `parquet:"eof,optional"`
}
