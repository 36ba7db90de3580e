package simulate

import "time"

// Config is a run: the work, the machines, and the causes of slowness. Each cause can be switched off: nil.
// Times are in nanoseconds, rates in bits per second.
type Config struct {
	Seed        uint64
	Start       int64 // time of the first call
	Calls       int
	Depth       int // calls of the application at a time
	Connections int // of the client
	Clients     int // that do the same kind of work
	Mix         Mix
	Size        int // of READ and WRITE in bytes
	NFS4        bool
	ReadRead    bool // the client fetches the data of READs with RDMA Reads
	IWARP       bool // else RoCEv2
	DelayedAck  bool // TCP lets acknowledgements wait for data that carry them
	Threads     int  // of the server
	Granted     int  // credits; 0 for many
	MTU         uint32
	LineRate    int64
	Propagation int64   // of each of the two links
	Jitter      int64   // besides, on average
	AckTime     int64   // that an adapter needs to acknowledge
	AckSpread   float64 // of it: adapters made of software
	Burst       int64   // the application makes Depth calls at once, and thinks for so long when all are answered; 0: each is followed by one
	Spread      float64 // of the server's work on calls; 0 for a quarter
	AckTimeout  int     // exponent of the acknowledgement timeout
	Retries     int
	Handshake   bool // the connections are set up in the capture
	Snap        int  // bytes of a frame that are captured; 0 for all

	PathDelay          *PathDelay
	PathStall          *PathStall
	LinkFull           *LinkFull
	Congestion         *Congestion
	CrossTraffic       *CrossTraffic
	Loss               *Loss
	ReceiverNotReady   *ReceiverNotReady
	ReadDepth          *ReadDepth
	ServerTime         *ServerTime
	ServerThreads      *ServerThreads
	Credits            *Credits
	SessionSlots       *SessionSlots
	ClientReadResponse *ClientReadResponse
	ClientIdle         *ClientIdle
	OneAtATime         *OneAtATime
	AskedToWait        *AskedToWait
	Outage             *Outage
	Neighbour          *Neighbour
	Recall             *Recall
	CaptureGaps        *CaptureGaps
}

// PathDelay is distance.
type PathDelay struct {
	OneWay     int64
	Share      float64 // of it on the client's side of the switch
	Connection int     // that takes the long way, from 1; 0 for all
	First      bool    // only the first client's
}

// Pauser is who stops the path.
type Pauser uint8

// Who may stop the path.
const (
	Unseen           Pauser = iota // something behind the capture points; no frame tells
	PausedByReceiver               // its adapter, by pause frames
	PausedBySwitch                 // by pause frames to the sender
)

// PathStall is a path that stands still for a while, again and again.
type PathStall struct {
	Every, For int64
	FromServer bool // which direction
	By         Pauser
}

// LinkFull is a link slower than what is to be moved.
type LinkFull struct {
	Rate  int64
	Marks bool // the switch marks what waits for it
}

// Congestion is a switch that marks, so that adapters send slower.
type Congestion struct {
	Share      float64 // of the link that other traffic leaves
	FromServer bool
}

// CrossTraffic is bursts of others in a queue of the switch, which marks nothing.
type CrossTraffic struct {
	Every, For int64 // on average, and what a burst takes of the link
	FromServer bool
}

// Place is where a packet is lost.
type Place uint8

// Places.
const (
	BeforeSwitch Place = iota // behind the sender's capture point
	BehindSwitch              // before the receiver's capture point
	BehindTap                 // in the receiver's adapter
)

// Loss is packets that are lost.
type Loss struct {
	Rate       float64 // of packets; with Tail, of replies
	Tail       bool    // only the last packets of replies, or of calls
	FromServer bool
	Place      Place
}

// ReceiverNotReady is Sends that find no buffer.
type ReceiverNotReady struct {
	Rate     float64 // of calls
	Times    int     // that each is refused at most
	Timer    uint8   // code of the wait
	AtServer bool
}

// ReadDepth limits the RDMA Reads in flight, at the client's adapter or at the server.
type ReadDepth struct {
	Depth    int
	ByServer bool
}

// ServerTime is a server that works long.
type ServerTime struct {
	Extra  int64
	Op     Operation
	Share  float64 // of these calls; 0 for all
	Spread float64 // 0 for a third
	Data   int64   // besides, until its adapter answers an RDMA Read
}

// ServerThreads is a server that serves few calls at a time.
type ServerThreads struct{ Threads int }

// Credits are few calls that the transport allows: granted few, or asked for few if Asked is not 0.
type Credits struct{ Granted, Asked int }

// SessionSlots are few slots of the NFSv4.1 session. The server gives no more, or the client asks for no more when it creates the session.
type SessionSlots struct {
	Slots    int
	ByClient bool
}

// ClientReadResponse is an adapter of the client that answers RDMA Reads late.
type ClientReadResponse struct{ Delay int64 }

// ClientIdle is an application that thinks between its calls.
type ClientIdle struct{ Think int64 }

// OneAtATime is an application that waits for each reply before it makes the next call.
type OneAtATime struct{}

// AskedToWait is a server that answers NFS3ERR_JUKEBOX, NFS4ERR_DELAY or NFS4ERR_GRACE.
type AskedToWait struct {
	Grace bool
	Rate  float64 // of calls
	Times int
	Wait  int64 // of the client, before it asks again
}

// Outage is a server that does not answer for a while.
type Outage struct {
	AtCall int // that the application makes when it begins
	For    int64
	Path   bool  // the path is cut; else the server is down
	Hang   bool  // the server's adapter goes on, its threads do not
	Timer  int64 // of the client, after which it sends a call again on the same connection; 0 for never
}

// Neighbour is another client whose calls fill the server's queue.
type Neighbour struct {
	Depth int
	Calls int
	Extra int64 // that the server works on each
}

// Recall is OPENs that wait until another client gives back its delegation.
type Recall struct {
	Rate float64 // of OPENs
	Hold int64   // that the other client takes
	Wait int64   // of the first, before it asks again; 0 if the server answers only when the delegation is back
}

// CaptureGaps are packets that the mirror loses.
type CaptureGaps struct{ Rate float64 }

// Defaults is a healthy run.
func Defaults(seed uint64) Config {
	return Config{
		Seed:        seed,
		Start:       time.Date(2024, 5, 6, 7, 8, 9, 0, time.UTC).UnixNano(),
		Calls:       300,
		Depth:       4,
		Connections: 1,
		Clients:     1,
		AckTime:     600,
		Mix:         Mix{Read: 4, Write: 3, Small: 4},
		Size:        16 << 10,
		Threads:     64,
		MTU:         4096,
		LineRate:    100_000_000_000,
		Propagation: 800,
		AckTimeout:  14,
		Retries:     7,
	}
}
