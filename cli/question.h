// A scenario that is ready to be priced; the commands name it by this header.
#pragma once

#include "scenarios/question.h"
