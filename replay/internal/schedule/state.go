package schedule

// State is how far a call has come.
type State uint8

// States.
const (
	Waiting   State = iota // for replies of other calls
	Ready                  // waits for nothing but its time
	Crowded                // as many calls as its connection may have are under way
	Preceded               // a call that the plan does not have goes before it
	Slotless               // no slot of its session is free
	Sent                   // handed to the transport
	Answered               // its reply is being looked at
	Postponed              // the server wants it later
	Judged                 // its verdict is known, but another call has to end with it
	Over                   // it has a verdict, and what waits for it is released
	GivenUp                // over without having been sent

	states = int(GivenUp) + 1
)

// Event is what happens to a call.
type Event uint8

// Events.
const (
	Released   Event = iota // the last reply that it waited for is there
	NoRoom                  // the connection is full
	Room                    // the connection has room again
	Precede                 // another call has to go first
	Follow                  // that one is over
	NoSlot                  // the session has no free slot
	Slot                    // it has one again
	Hand                    // it goes to the transport
	Unsendable              // the transport could not send it as it was laid out
	Reply                   // its reply is there
	NoReply                 // there will be none
	Postpone                // the server asked for it to be sent again
	Again                   // the time for that has come
	Judge                   // its verdict is known
	Finish                  // nothing else has to end with it
	GiveUp                  // it will not be sent

	events = int(GiveUp) + 1
)

// transitions are all there are:
//
//	Waiting ─Released─► Ready ─Hand─► Sent ─Reply─► Answered ─Judge─► Judged ─Finish─► Over
//	                      ▲            │               │                ▲                ▲
//	                      │            ├─NoReply───────┼────────────────┘                │
//	                      │            │               ├─Finish (not of the plan)────────┘
//	                      ├─Unsendable─┘               │
//	                      ├─Again─── Postponed ◄───────┘ Postpone
//	                      │
//	                      ├─Room──── Crowded  ◄─NoRoom── Ready
//	                      ├─Follow── Preceded ◄─Precede─ Ready
//	                      └─Slot──── Slotless ◄─NoSlot── Ready
//
// GiveUp leads to GivenUp from Ready, Crowded, Preceded, Slotless and Postponed, and from
// Sent if the guard has kept the call back.
var transitions = [states][events]State{
	Waiting:   {Released: Ready},
	Ready:     {NoRoom: Crowded, Precede: Preceded, NoSlot: Slotless, Hand: Sent, GiveUp: GivenUp},
	Crowded:   {Room: Ready, GiveUp: GivenUp},
	Preceded:  {Follow: Ready, GiveUp: GivenUp},
	Slotless:  {Slot: Ready, GiveUp: GivenUp},
	Sent:      {Reply: Answered, NoReply: Judged, Unsendable: Ready, GiveUp: GivenUp},
	Answered:  {Judge: Judged, Postpone: Postponed, Finish: Over},
	Postponed: {Again: Ready, GiveUp: GivenUp},
	Judged:    {Finish: Over},
}

var stateNames = [states]string{"waiting", "ready", "crowded", "preceded", "without a slot", "sent", "answered", "postponed", "judged", "over", "given up"}

func (s State) String() string { return stateNames[s] }

var eventNames = [events]string{"released", "no room", "room", "precede", "follow", "no slot", "slot", "hand", "unsendable", "reply", "no reply",
	"postpone", "again", "judge", "finish", "give up"}

func (v Event) String() string { return eventNames[v] }
