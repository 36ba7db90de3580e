package invariant

import (
	"fmt"
	"time"

	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
)

// Expected describes a correct reply.
func (b *Breach) Expected() string {
	switch b.Kind {
	case Contradiction:
		return "results that agree with their arguments"
	case CookieZero:
		return "a cookie other than 0, which stands for the beginning of the directory"
	case CookieTwice:
		return "a unique cookie for each entry of a directory"
	case NoEntries:
		return "an entry, the end of the directory, or an error"
	case ChangeKept:
		return "a different change attribute after a change of the directory"
	case ChangeBack:
		return "a change attribute that the directory did not have before its last change"
	case ChangeForeign:
		return "change_info with the values of the change attribute"
	case TimeBack:
		return "a change time no earlier than in previous replies"
	case Moved:
		what := "change attribute"
		if b.At < 0 {
			what = "change time"
		}
		return fmt.Sprintf("the same %s while the %s is the same", b.name(), what)
	case Replaced:
		return fmt.Sprintf("the same %s for the same file handle", b.name())
	case NotAsked:
		return "only requested attributes"
	case NotSet:
		return fmt.Sprintf("%s to be set, or an error", b.name())
	}
	return ""
}

// Seen describes the reply.
func (b *Breach) Seen() string {
	switch b.Kind {
	case Contradiction:
		return b.Why
	case CookieZero:
		return fmt.Sprintf("entry %d of the page has cookie 0", b.Now+1)
	case CookieTwice:
		if b.Was > 1 {
			return fmt.Sprintf("cookie %d again, and %d others of the page", b.Now, b.Was-1)
		}
		return fmt.Sprintf("cookie %d again", b.Now)
	case NoEntries:
		return "no entries, and eof is not set"
	case ChangeKept:
		return fmt.Sprintf("%d before and after, atomically", b.Now)
	case ChangeBack:
		return fmt.Sprintf("%d, which became %d", b.Now, b.Was)
	case ChangeForeign:
		return fmt.Sprintf("%d after the change, and %d in change_info", b.Now, b.Was)
	case TimeBack:
		return fmt.Sprintf("%v earlier", time.Duration(min(b.Was-b.Now, 1<<63-1)))
	case Moved, Replaced:
		if b.Attribute == nfs4.FATTR4_OWNER || b.Attribute == nfs4.FATTR4_OWNER_GROUP {
			return "another " + b.name()
		}
		if b.Attribute == nfs4.FATTR4_MODE {
			return fmt.Sprintf("%s %04o instead of %04o", b.name(), b.Now, b.Was)
		}
		return fmt.Sprintf("%s %d instead of %d", b.name(), b.Now, b.Was)
	case NotAsked:
		return b.name() + ", which was not requested"
	case NotSet:
		return "success, but attrsset does not have " + b.name()
	}
	return ""
}

func (b *Breach) name() string {
	if s := nfs4.AttrName(b.Attribute); s != "" {
		return s
	}
	return fmt.Sprintf("attribute %d", b.Attribute)
}
