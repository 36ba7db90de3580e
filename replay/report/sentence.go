package report

import (
	"fmt"

	"github.com/rpcrdma/toolkit/replay/judge/verdict"
)

// Sentence is a reason for people. Scripts read the Code.
func Sentence(r *verdict.Reason) string {
	if int(r.Code) < len(sentences) {
		switch s := sentences[r.Code].(type) {
		case string:
			return s
		case func(*verdict.Reason) string:
			return s(r)
		}
	}
	return r.Code.String()
}

// at is where a status belongs to, before a colon.
func at(r *verdict.Reason) string {
	if r.At.Path == "" {
		return ""
	}
	return r.At.Path + ": "
}

// then adds the detail of a reason to a sentence, if there is one.
func then(sentence string, r *verdict.Reason) string {
	if r.Detail == "" {
		return sentence
	}
	return sentence + ": " + r.Detail
}

// detail is the sentence of a reason that comes from elsewhere.
func detail(r *verdict.Reason) string { return r.Detail }

// sentences has one for each code: a string, or a function if there are arguments.
var sentences = [256]any{
	verdict.StateProtection: "machine credentials need RPCSEC_GSS: the server's state is not protected by one",
	verdict.DirectorySize:   "size and link count of a directory",
	verdict.ACLOrder:        "the entries of an access control list in another order, or a mask that says nothing more",
	verdict.LinkMode:        "the mode of a symbolic link means nothing",
	verdict.LockEnd:         "the server has its own number for a lock up to the end of the file",
	verdict.ServerLimits:    "the server's own limits and properties",
	verdict.UserNames:       "users and groups are written in another way",
	verdict.Optional:        "what a server may leave out or add",
	verdict.ExclusiveCreate: "what an exclusive create leaves undefined until the attributes are set",
	verdict.AboveBase:       "the directories above the base are the server's own",
	verdict.Listing: func(r *verdict.Reason) string {
		const s = "the server orders and splits directories its own way"
		if r.N > 0 {
			return s + ": the captured listing ended before this one"
		}
		return s
	},
	verdict.Holes:             "the server shows holes its own way",
	verdict.NotCaptured:       "the capture has no reply to compare with",
	verdict.PartialResults:    "the capture lacks a part of the results: only their status was compared",
	verdict.UnreadableResults: "the captured results cannot be read: only their status was compared",
	verdict.DataNotCaptured:   "the capture lacks a part of the data: their length was compared",
	verdict.NoReplyEither:     "no reply, as captured",

	verdict.ModeOnly: "the server keeps no access control lists: the captured one says no more than the mode",

	verdict.LayoutTooSmall: "the captured chunks do not fit this server's handles: the endpoint chose its own",
	verdict.ReplyRoom:      "the captured chunks have no room for the reply at this inline threshold: the endpoint chose its own",
	verdict.Undelegated:    "the server gave no delegation: an open or the anonymous state id was used instead",
	verdict.Uncalled:       "the server did not tell that it had granted the lock, but when it was asked",
	verdict.Patience:       "done at the second attempt or later: the server had asked for patience",
	verdict.Stateless:      "the server has not given the state, or has lost it: an open or the anonymous state id was used instead",
	verdict.Unkept:         "sent again after a reconnect: the server had not kept its reply",
	verdict.Adapted:        "adapted to what the server supports, as a client does",
	verdict.Restarted:      "sent again: the server had forgotten its client, which was made anew",
	verdict.StateMovedOn:   "done at the second attempt or later: a call under way together with it had moved its state id on",

	verdict.NoDelegation: "the server gave no delegation that could be returned",
	verdict.Returned:     "the delegation was returned when the server recalled it",
	verdict.NotAsked:     "a client asks no more: the server has said that it does not have it",
	verdict.NoConfirm:    "the server did not ask for OPEN_CONFIRM",
	verdict.NoRoot:       "the directory given is the root: nothing stands for what was above the base",
	verdict.NoState:      "the state was not established on this server",
	verdict.NoValue:      detail,
	verdict.Follows: func(r *verdict.Reason) string {
		return fmt.Sprintf("needs what op %d (XID %08x, %s) was to give: %s", r.Call.ID, r.Call.XID, r.Call.What, r.Now)
	},

	verdict.Refused:  detail,
	verdict.NoSlot:   "no slot of the session is left whose state is known",
	verdict.NoReply:  detail,
	verdict.BadReply: detail,

	verdict.RPCExecuted: func(r *verdict.Reason) string { return "done, was " + r.Was },
	verdict.RPCFailed:   func(r *verdict.Reason) string { return r.Now + ", was done" },
	verdict.RPCDiffers:  func(r *verdict.Reason) string { return fmt.Sprintf("%s, was %s", r.Now, r.Was) },
	verdict.Succeeds:    func(r *verdict.Reason) string { return fmt.Sprintf("%sOK, was %s", at(r), r.Was) },
	verdict.SucceedsWrongly: func(r *verdict.Reason) string {
		return fmt.Sprintf("%sOK, was %s, and must fail here as well", at(r), r.Was)
	},
	verdict.Fails: func(r *verdict.Reason) string { return fmt.Sprintf("%s%s, was OK", at(r), r.Now) },
	verdict.StatusDiffers: func(r *verdict.Reason) string {
		return fmt.Sprintf("%s%s, was %s", at(r), r.Now, r.Was)
	},
	verdict.OperationCount: func(r *verdict.Reason) string {
		return fmt.Sprintf("%d operations were done, %d before", r.N, r.M)
	},
	verdict.FieldDiffers: func(r *verdict.Reason) string {
		return fmt.Sprintf("%s%s, was %s", at(r), r.Now, r.Was)
	},
	verdict.NamesMissing: func(r *verdict.Reason) string { return fmt.Sprintf("%d names are missing: %s", r.N, r.Detail) },
	verdict.NamesAdded:   func(r *verdict.Reason) string { return fmt.Sprintf("%d names were not there: %s", r.N, r.Detail) },
	verdict.DataShort:    func(r *verdict.Reason) string { return fmt.Sprintf("%d of %d bytes of data came", r.N, r.M) },
	verdict.TextDiffers:  func(r *verdict.Reason) string { return fmt.Sprintf("text %q, was %q", r.Now, r.Was) },
	verdict.DataDiffer:   func(r *verdict.Reason) string { return fmt.Sprintf("the data differ: %d bytes at %d", r.N, r.M) },
	verdict.PatternDiffers: func(r *verdict.Reason) string {
		return fmt.Sprintf("the data differ from those made up, at %d", r.N)
	},
	verdict.WrittenLost: func(r *verdict.Reason) string {
		return fmt.Sprintf("what was written is not there: zeros at %d", r.N)
	},
	verdict.HoleFilled: func(r *verdict.Reason) string {
		return fmt.Sprintf("a hole was made at %d, and does not read as zeros", r.N)
	},
	verdict.ChunkDiffers: func(r *verdict.Reason) string {
		return fmt.Sprintf("Write chunk %d: %s bytes used, was %s", r.N, r.Now, r.Was)
	},

	verdict.NotStable: func(r *verdict.Reason) string {
		return fmt.Sprintf("a WRITE that was to be %s was answered with %s", r.Was, r.Now)
	},
	verdict.VerifierChanged: "the COMMIT has another write verifier than the WRITE before it, and no reply was lost between them",
	verdict.WrittenDiffers: func(r *verdict.Reason) string {
		return fmt.Sprintf("what was written is not there: other bytes at %d", r.N)
	},
	verdict.FileShort: func(r *verdict.Reason) string {
		return fmt.Sprintf("the file ends at %d, and was written behind that", r.N)
	},
	verdict.StoodStill: func(r *verdict.Reason) string {
		return fmt.Sprintf("%s is still %s after a change that came later", r.At.Field, r.Now)
	},
	verdict.TimeNotSet: func(r *verdict.Reason) string {
		return fmt.Sprintf("%s is %s, and was set to %s", r.At.Field, r.Now, r.Was)
	},
	verdict.HandleShared: func(r *verdict.Reason) string {
		return fmt.Sprintf("the handle of %q belongs to another file", r.Detail)
	},
	verdict.SeeksBack:   func(r *verdict.Reason) string { return fmt.Sprintf("SEEK from %d leads to %d", r.M, r.N) },
	verdict.NameLost:    "the name was made, and is not there",
	verdict.NameLeft:    "the name was removed, and is still there",
	verdict.OtherObject: "the name leads to another object than the one that got it",
	verdict.LockedTwice: func(r *verdict.Reason) string {
		return fmt.Sprintf("another owner has a lock of the same bytes, which excludes this one, from op %d (XID %08x)", r.Call.ID, r.Call.XID)
	},
	verdict.Invariant: func(r *verdict.Reason) string { return fmt.Sprintf("%s%s; expected %s", at(r), r.Now, r.Was) },
	verdict.NameTwice: func(r *verdict.Reason) string { return fmt.Sprintf("the listing has the name %q twice", r.Detail) },

	verdict.Cut: func(r *verdict.Reason) string {
		return then("the capture lacks parts of calls before it, one of which may have made what is missing here", r)
	},
	verdict.Strangers: "somebody who is not in the capture had changed the object",
	verdict.Unhappened: func(r *verdict.Reason) string {
		return fmt.Sprintf("what op %d (XID %08x, %s) changed in the capture has not happened here", r.Call.ID, r.Call.XID, r.Call.What)
	},
	verdict.OnlyHere: func(r *verdict.Reason) string {
		return fmt.Sprintf("what op %d (XID %08x, %s) changed here has not happened in the capture", r.Call.ID, r.Call.XID, r.Call.What)
	},
	verdict.Planned: detail,
	verdict.Unsupported: func(r *verdict.Reason) string {
		return fmt.Sprintf("%s%s: the server does not support it", at(r), r.Now)
	},
	verdict.NoACL:     func(r *verdict.Reason) string { return "the server does not have NFSACL: " + r.Now },
	verdict.NoACLKept: "the server keeps no access control lists",
	verdict.NoLocks:   "the server's lock manager cannot be reached",
	verdict.Together: func(r *verdict.Reason) string {
		return fmt.Sprintf("%s was under way together with op %d (XID %08x), which changes the same object", r.Was, r.Call.ID, r.Call.XID)
	},
	verdict.LocksTogether: func(r *verdict.Reason) string {
		return fmt.Sprintf("%s was under way together with op %d (XID %08x), which locks or unlocks the same bytes", r.Was, r.Call.ID, r.Call.XID)
	},
	verdict.LockWaits: func(r *verdict.Reason) string {
		return fmt.Sprintf("op %d (XID %08x) waits for a lock of the same bytes: the server decides who gets it first", r.Call.ID, r.Call.XID)
	},

	verdict.Squashed: func(r *verdict.Reason) string {
		return fmt.Sprintf("the server takes root for user %s (root_squash)", r.Now)
	},
	verdict.ReadOnly:  "the server's file system is read-only",
	verdict.Shared:    "other clones change the same files",
	verdict.SentAgain: "at another moment than in the capture: the call had to be sent again",
	verdict.AnyOrder:  "at another moment than in the capture: --relaxed lets what does not depend on each other go in any order",
}
